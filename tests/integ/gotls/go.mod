module shunt/tests/integ/gotls

go 1.25.0
