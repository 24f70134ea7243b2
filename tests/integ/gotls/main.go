// SPDX-License-Identifier: Apache-2.0

// Gotls is crypto/tls with net/http, in either role, for the integration tests. Either side shows a certificate.
//
//	gotls server ADDRESS FOLDER VERSION          echoes bodies, for ever
//	gotls client ADDRESS FOLDER VERSION PROTOCOL PATH SIZE
//
// FOLDER has ca.pem and back.pem or client.pem with their keys; VERSION is 1.2 or 1.3; PROTOCOL h2 or http/1.1. The client
// sends SIZE bytes to be echoed on each of two connections, compares, and prints a line of JSON for each.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const serverName = "front.example"

type found struct {
	Status  int    `json:"status"`
	Proto   string `json:"proto"`
	Version string `json:"version"`
	ALPN    string `json:"alpn"`
	Resumed bool   `json:"resumed"`
	Same    bool   `json:"same"`
	Closed  string `json:"closed"`
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func config(folder, own, version string) *tls.Config {
	certificate := must(tls.LoadX509KeyPair(filepath.Join(folder, own+".pem"), filepath.Join(folder, own+".key")))
	cas := x509.NewCertPool()
	if !cas.AppendCertsFromPEM(must(os.ReadFile(filepath.Join(folder, "ca.pem")))) {
		log.Fatal("ca.pem: no certificate")
	}
	number := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[version]
	return &tls.Config{
		Certificates: []tls.Certificate{certificate}, RootCAs: cas, ClientCAs: cas,
		ClientAuth: tls.RequireAndVerifyClientCert, ServerName: serverName,
		MinVersion: number, MaxVersion: number, ClientSessionCache: tls.NewLRUClientSessionCache(4),
	}
}

func serve(address, folder, version string) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-tls", fmt.Sprintf("%s %s %s", tls.VersionName(r.TLS.Version), r.TLS.NegotiatedProtocol,
			r.TLS.PeerCertificates[0].Subject.CommonName))
		body := must(io.ReadAll(r.Body))
		must(w.Write(body))
	}
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(echo), TLSConfig: config(folder, "back", version)}
	log.Fatal(server.ListenAndServeTLS("", ""))
}

// ended waits for the end that the server gives a connection whose own end it was told of.
func ended(connection *tls.Conn) string {
	connection.CloseWrite()
	connection.NetConn().SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, connection); err != nil {
		return err.Error()
	}
	return "close_notify" // EOF without it is io.ErrUnexpectedEOF
}

func ask(base *tls.Config, address, protocol, path string, body []byte) found {
	var connection *tls.Conn
	protocols := new(http.Protocols)
	protocols.SetHTTP1(protocol == "http/1.1")
	protocols.SetHTTP2(protocol == "h2")
	own := base.Clone()
	own.NextProtos = []string{protocol}
	transport := &http.Transport{
		Protocols: protocols,
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			made, err := (&tls.Dialer{Config: own}).DialContext(ctx, network, address)
			if err == nil {
				connection = made.(*tls.Conn)
			}
			return made, err
		},
	}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Minute} // the test has one, too
	answer := must(client.Post("https://"+address+path, "application/octet-stream", bytes.NewReader(body)))
	got := must(io.ReadAll(answer.Body))
	answer.Body.Close()
	state := connection.ConnectionState()
	return found{answer.StatusCode, answer.Proto, tls.VersionName(state.Version), state.NegotiatedProtocol,
		state.DidResume, bytes.Equal(got, body), ""}
}

// closes makes a connection without a request, which its client ends.
func closes(base *tls.Config, address, protocol string) string {
	own := base.Clone()
	own.NextProtos = []string{protocol}
	connection := must(tls.Dial("tcp", address, own))
	defer connection.Close()
	return ended(connection)
}

func main() {
	if len(os.Args) == 5 && os.Args[1] == "server" {
		serve(os.Args[2], os.Args[3], os.Args[4])
	}
	if len(os.Args) != 8 || os.Args[1] != "client" {
		log.Fatal("usage: gotls server ADDRESS FOLDER VERSION | client ADDRESS FOLDER VERSION PROTOCOL PATH SIZE")
	}
	address, base, protocol := os.Args[2], config(os.Args[3], "client", os.Args[4]), os.Args[5]
	body := make([]byte, must(strconv.Atoi(os.Args[7])))
	random := rand.NewChaCha8([32]byte{1})
	must(random.Read(body))
	for range 2 {
		told := ask(base, address, protocol, os.Args[6], body)
		told.Closed = closes(base, address, protocol)
		fmt.Println(string(must(json.Marshal(told))))
	}
}
