// SPDX-License-Identifier: Apache-2.0

// Grpcgo makes calls on one channel of grpc-go, for the integration tests: with an xds: target it is
// another client of the xDS servers. Each line of its input is a batch of calls as JSON; for each it
// prints a line, which counts the answers by their text and the failures by theirs.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	_ "google.golang.org/grpc/xds" // the resolver and the balancers
)

const callTimeout = 10 * time.Second

type batch struct {
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Count   int               `json:"count"`
}

type result struct {
	Answers  map[string]int `json:"answers"`
	Failures map[string]int `json:"failures"`
}

// plain leaves messages as they are.
type plain struct{}

func (plain) Name() string                    { return "plain" }
func (plain) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (plain) Unmarshal(b []byte, v any) error { *v.(*[]byte) = append([]byte{}, b...); return nil }

func (b batch) run(channel *grpc.ClientConn) result {
	found := result{map[string]int{}, map[string]int{}}
	for range b.Count {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		ctx = metadata.NewOutgoingContext(ctx, metadata.New(b.Headers))
		var request, answer []byte
		if err := channel.Invoke(ctx, b.Method, &request, &answer); err != nil {
			found.Failures[err.Error()]++
		} else {
			found.Answers[string(answer)]++
		}
		cancel()
	}
	return found
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: grpcgo TARGET")
	}
	channel, err := grpc.NewClient(os.Args[1],
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})))
	if err != nil {
		log.Fatal(err)
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var asked batch
		if err := json.Unmarshal(input.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		line, err := json.Marshal(asked.run(channel))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(line))
	}
}
