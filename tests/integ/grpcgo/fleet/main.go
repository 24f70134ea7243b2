// SPDX-License-Identifier: Apache-2.0

// Fleet is a gRPC server, and a load that costs little for it, until a file exists.
//
//	fleet serve ADDRESS
//	fleet load TARGET STOP_FILE CHANNELS CALLS_PER_S STREAMS STREAM_S
//
// Each channel has a connection of its own, on which calls begin at their rate, whatever becomes of those before; the
// streams are shared by the channels, and on each a message comes four times a second. Nothing is tried again but what
// grpc-go sends again by itself, as no server has seen it. In the end it prints a line of JSON: how many there were,
// which failed, on which connection and when, how long calls took, and each channel's connections by their ports: when
// each came and ended, whether by RST, and what was on it then.
// Times are seconds of the monotonic clock, which other programs can read.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

const (
	unary       = "/shunt.test.Echo/Unary"
	expand      = "/shunt.test.Echo/Expand"
	timeout     = 20 * time.Second
	messageTime = 250 * time.Millisecond
	maxPending  = 40_000 // calls of all channels; what would be more is not begun, and told
	tick        = 2 * time.Millisecond
)

var description = grpc.StreamDesc{StreamName: "Expand", ServerStreams: true}

// plain leaves messages as they are.
type plain struct{}

func (plain) Name() string                    { return "plain" }
func (plain) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (plain) Unmarshal(b []byte, v any) error { *v.(*[]byte) = append([]byte{}, b...); return nil }

// answer gives a call its message back, and a stream as many as it asks for.
func answer(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if method, _ := grpc.MethodFromServerStream(stream); method == unary {
		return stream.SendMsg(&request)
	}
	count, err := strconv.Atoi(string(request))
	for i := 0; err == nil && i < count; i++ {
		time.Sleep(messageTime)
		err = stream.SendMsg(&request)
	}
	return err
}

func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return grpc.NewServer(grpc.ForceServerCodec(plain{}), grpc.UnknownServiceHandler(answer)).Serve(listener)
}

func monotonic() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		log.Fatal(err)
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9
}

type failure struct {
	Kind    string  `json:"kind"`
	Channel int     `json:"channel"`
	Began   float64 `json:"began"`
	Ended   float64 `json:"ended"`
	Code    string  `json:"code"`
	Text    string  `json:"text"`
}

type opened struct {
	At    float64 `json:"at"`
	Port  int     `json:"port"`
	Ended float64 `json:"ended"` // 0: not yet
	Reset bool    `json:"reset"` // by the other end
	Left  int     `json:"left"`  // calls and streams that were on it then
}

type channel struct {
	*grpc.ClientConn
	number int
	// Of a connection that did not come to be nothing is told.
	opened []*opened
	last   float64 // when a call succeeded
	gap    float64 // the longest time between two that did
}

type load struct {
	sync.Mutex
	calls, streams, left int
	failed               []failure
	took                 []float32 // ms, of calls
	channels             []*channel
	on                   map[int]int // calls and streams, by the port of their connection
	stop                 string
	pending              atomic.Int64
	waiting              sync.WaitGroup
}

func (l *load) dialer(c *channel) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		o := &opened{At: monotonic(), Port: portOf(connection.LocalAddr())}
		l.Lock()
		c.opened = append(c.opened, o)
		l.Unlock()
		return &watched{connection, l, o}, nil
	})
}

func portOf(address net.Addr) int { return address.(*net.TCPAddr).Port }

// watched is a connection of which is noted how it ends.
type watched struct {
	net.Conn
	*load
	*opened
}

func (w *watched) saw(n int, err error) (int, error) {
	if err != nil {
		w.Lock()
		defer w.Unlock()
		if w.Ended == 0 {
			w.Ended, w.Reset, w.Left = monotonic(), errors.Is(err, unix.ECONNRESET), w.on[w.Port]
		}
	}
	return n, err
}

func (w *watched) Read(b []byte) (int, error)  { return w.saw(w.Conn.Read(b)) }
func (w *watched) Write(b []byte) (int, error) { return w.saw(w.Conn.Write(b)) }

func (w *watched) Close() error {
	w.saw(0, net.ErrClosed)
	return w.Conn.Close()
}

// attempt is the context's key of the port on which a call or stream is, 0 when it is on none.
type attempt struct{}

func (l *load) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, attempt{}, new(int))
}

// HandleRPC counts calls and streams on connections: from their first frame until their last one has been read.
func (l *load) HandleRPC(ctx context.Context, what stats.RPCStats) {
	port := ctx.Value(attempt{}).(*int)
	l.Lock()
	defer l.Unlock()
	switch what := what.(type) {
	case *stats.OutHeader:
		*port = portOf(what.LocalAddr)
		l.on[*port]++
	case *stats.InTrailer, *stats.End:
		if *port != 0 {
			l.on[*port]--
			*port = 0
		}
	}
}

func (l *load) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (l *load) HandleConn(context.Context, stats.ConnStats)                       {}

func (l *load) note(kind string, c *channel, began float64, err error) {
	now := monotonic()
	l.Lock()
	defer l.Unlock()
	if kind == "call" {
		l.calls++
		l.took = append(l.took, float32((now-began)*1000))
	} else {
		l.streams++
	}
	if err != nil {
		s := status.Convert(err)
		l.failed = append(l.failed, failure{kind, c.number, began, now, s.Code().String(), s.Message()})
		return
	}
	if kind == "call" {
		c.gap = max(c.gap, now-c.last)
		c.last = now
	}
}

func (l *load) call(c *channel) {
	defer l.waiting.Done()
	defer l.pending.Add(-1)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	began := monotonic()
	request, reply := []byte("fleet"), []byte{}
	err := c.Invoke(ctx, unary, &request, &reply)
	if err == nil && string(reply) != "fleet" {
		err = fmt.Errorf("another answer: %q", reply)
	}
	l.note("call", c, began, err)
}

func read(c *channel, messages int) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout+time.Duration(messages)*messageTime)
	defer cancel()
	stream, err := c.NewStream(ctx, &description, expand)
	if err != nil {
		return err
	}
	request := []byte(strconv.Itoa(messages))
	if err := stream.SendMsg(&request); err != nil && err != io.EOF { // EOF: RecvMsg tells
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		var message []byte
		err := stream.RecvMsg(&message)
		if err == io.EOF && i == messages {
			return nil
		} else if err != nil {
			return fmt.Errorf("after %d of %d messages: %w", i, messages, err)
		}
	}
}

func (l *load) goesOn() bool {
	_, err := os.Stat(l.stop)
	return err != nil
}

func (l *load) stream(c *channel, messages int) {
	defer l.waiting.Done()
	for l.goesOn() {
		began := monotonic()
		l.note("stream", c, began, read(c, messages))
	}
}

// steadily begins calls in the order of channels, as many as are due.
func (l *load) steadily(perSecond float64) {
	begun, started := 0, time.Now()
	for n := 0; ; n++ {
		if n%50 == 0 && !l.goesOn() {
			return
		}
		for due := int(time.Since(started).Seconds() * perSecond); begun < due; begun++ {
			if l.pending.Load() >= maxPending {
				l.left++
				continue
			}
			l.pending.Add(1)
			l.waiting.Add(1)
			go l.call(l.channels[begun%len(l.channels)])
		}
		time.Sleep(tick)
	}
}

func (l *load) told(seconds float64) map[string]any {
	slices.Sort(l.took)
	at := func(part float64) float32 { return l.took[int(float64(len(l.took)-1)*part)] }
	connections, gaps := [][]*opened{}, []float64{}
	for _, c := range l.channels {
		connections = append(connections, c.opened)
		gaps = append(gaps, c.gap)
	}
	return map[string]any{"calls": l.calls, "streams": l.streams, "failed": append([]failure{}, l.failed...),
		"per_s": float64(l.calls) / seconds, "not_begun": l.left, "connections": connections, "gaps_s": gaps,
		"ms": map[string]float32{"p50": at(.5), "p99": at(.99), "max": at(1)}}
}

func run(target, stop string, channels, perSecond, streams int, streamSeconds float64) error {
	l := &load{stop: stop, on: map[int]int{}}
	for i := range channels {
		c := &channel{number: i, last: monotonic()}
		var err error
		c.ClientConn, err = grpc.NewClient("passthrough:///"+target, l.dialer(c),
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(l),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})))
		if err != nil {
			return err
		}
		l.channels = append(l.channels, c)
	}
	for i := range streams {
		l.waiting.Add(1)
		go l.stream(l.channels[i%channels], int(streamSeconds/messageTime.Seconds()))
	}
	started := time.Now()
	fmt.Println("ready")
	l.steadily(float64(perSecond))
	seconds := time.Since(started).Seconds()
	l.waiting.Wait()
	return json.NewEncoder(os.Stdout).Encode(l.told(seconds))
}

func main() {
	args := os.Args[1:]
	var err error
	if len(args) == 2 && args[0] == "serve" {
		err = serve(args[1])
	} else if len(args) == 7 && args[0] == "load" {
		var numbers [4]float64
		for i := range numbers {
			if numbers[i], err = strconv.ParseFloat(args[3+i], 64); err != nil {
				log.Fatal(err)
			}
		}
		err = run(args[1], args[2], int(numbers[0]), int(numbers[1]), int(numbers[2]), numbers[3])
	} else {
		log.Fatal("usage: fleet serve ADDRESS | fleet load TARGET STOP_FILE CHANNELS CALLS_PER_S STREAMS STREAM_S")
	}
	if err != nil {
		log.Fatal(err)
	}
}
