// SPDX-License-Identifier: Apache-2.0

// Streams is a gRPC server that gives each message back, and clients of it that hold many streams for
// a long time, as services do that watch something.
//
//	streams serve ADDRESS
//	streams ask ADDRESS SECONDS STREAMS SOURCE...
//
// Each source is a channel from that address, which the streams share. On each stream a message goes
// there and back at once, and every ten to thirty seconds. Besides, a channel makes two calls a second
// with a deadline, and cancels a stream every three seconds. In the end it prints what became of them
// as JSON; texts of failures are counted.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	method      = "/shunt.test.Streams/Echo"
	opening     = 10 * time.Second // of all streams
	callTimeout = 20 * time.Second
	callEvery   = 500 * time.Millisecond
	cancelEvery = 3 * time.Second
)

var description = grpc.StreamDesc{StreamName: "Echo", ServerStreams: true, ClientStreams: true}

// plain leaves messages as they are.
type plain struct{}

func (plain) Name() string                    { return "plain" }
func (plain) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (plain) Unmarshal(b []byte, v any) error { *v.(*[]byte) = append([]byte{}, b...); return nil }

func echo(_ any, stream grpc.ServerStream) error {
	for {
		var message []byte
		if err := stream.RecvMsg(&message); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
}

func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return grpc.NewServer(grpc.ForceServerCodec(plain{}), grpc.UnknownServiceHandler(echo)).Serve(listener)
}

// tally is what became of all that was asked.
type tally struct {
	sync.Mutex
	Streams   int            `json:"streams"` // that lived to the end
	Messages  int            `json:"messages"`
	Calls     int            `json:"calls"`
	Cancelled int            `json:"cancelled"`
	Failures  map[string]int `json:"failures"`
}

func (t *tally) note(n *int, err error) {
	t.Lock()
	defer t.Unlock()
	if err != nil {
		t.Failures[err.Error()]++
	} else {
		*n++
	}
}

func thereAndBack(stream grpc.ClientStream) error {
	message, answer := bytes.Repeat([]byte("#"), 50+rand.IntN(200)), []byte{}
	if err := stream.SendMsg(&message); err != nil {
		return err
	}
	if err := stream.RecvMsg(&answer); err != nil {
		return err
	}
	if !bytes.Equal(message, answer) {
		return fmt.Errorf("%d bytes came back as %d others", len(message), len(answer))
	}
	return nil
}

// hold keeps a stream to the end.
func hold(channel *grpc.ClientConn, end time.Time, t *tally) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := channel.NewStream(ctx, &description, method)
	if err != nil {
		return err
	}
	for time.Now().Before(end) {
		err := thereAndBack(stream)
		t.note(&t.Messages, err)
		if err != nil {
			return err
		}
		pause := 10*time.Second + rand.N(20*time.Second)
		time.Sleep(min(pause, time.Until(end)+time.Millisecond))
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	var nothing []byte
	if err := stream.RecvMsg(&nothing); err != io.EOF {
		return fmt.Errorf("at the end: %v", err)
	}
	return nil
}

func callNowAndThen(channel *grpc.ClientConn, end time.Time, t *tally) {
	for ; time.Now().Before(end); time.Sleep(callEvery) {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		request, answer := []byte("call"), []byte{}
		t.note(&t.Calls, channel.Invoke(ctx, method, &request, &answer))
		cancel()
	}
}

func cancelNowAndThen(channel *grpc.ClientConn, end time.Time, t *tally) {
	for ; time.Now().Before(end); time.Sleep(cancelEvery) {
		ctx, cancel := context.WithCancel(context.Background())
		stream, err := channel.NewStream(ctx, &description, method)
		if err == nil {
			err = thereAndBack(stream)
		}
		t.note(&t.Cancelled, err)
		cancel()
	}
}

func connect(address, source string) (*grpc.ClientConn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", to)
		}))
}

func ask(address string, seconds, streams int, sources []string) error {
	t := tally{Failures: map[string]int{}}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	var all sync.WaitGroup
	for i, source := range sources {
		channel, err := connect(address, source)
		if err != nil {
			return err
		}
		all.Go(func() { callNowAndThen(channel, end, &t) })
		all.Go(func() { cancelNowAndThen(channel, end, &t) })
		for k := i; k < streams; k += len(sources) {
			all.Go(func() {
				time.Sleep(opening * time.Duration(k) / time.Duration(streams))
				t.note(&t.Streams, hold(channel, end, &t))
			})
		}
	}
	all.Wait()
	return json.NewEncoder(os.Stdout).Encode(&t)
}

func run(arguments []string) error {
	if len(arguments) == 2 && arguments[0] == "serve" {
		return serve(arguments[1])
	}
	if len(arguments) < 5 || arguments[0] != "ask" {
		return fmt.Errorf("usage: streams serve ADDRESS | ask ADDRESS SECONDS STREAMS SOURCE...")
	}
	seconds, err := strconv.Atoi(arguments[2])
	if err != nil {
		return err
	}
	streams, err := strconv.Atoi(arguments[3])
	if err != nil {
		return err
	}
	return ask(arguments[1], seconds, streams, arguments[4:])
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}
