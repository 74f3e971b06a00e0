// Package page shows a study to the person who runs its coordinator or one of its
// parties: a web page on this machine alone, with what happens as it happens
// (server-sent events), the same as JSON, and metrics for Prometheus. It has nothing
// that was computed from records.
package page

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cohort-engine/cohort/engine/study"
	"github.com/cohort-engine/cohort/internal/fault"
)

//go:embed page.html
var html []byte

// controlName is the file of a state folder that says where the page is.
const controlName = "control.json"

// Control is where the page of a study is, and the word that its orders need.
type Control struct {
	Address string `json:"address"`
	Token   string `json:"token"`
}

// Server is the page of one study.
type Server struct {
	watch   *study.Watch
	end     func(why string) error
	server  *http.Server
	control Control
	file    string
}

// Listen starts a page at an address of this machine; state is the folder that its
// control file goes to. end ends the study; nil is for a party's side, which cannot.
func Listen(address, state string, watch *study.Watch, end func(why string) error) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fault.Failed("--page "+address, err.Error(), "choose another address, such as 127.0.0.1:0", err)
	}
	if at, err := netip.ParseAddrPort(l.Addr().String()); err != nil || !at.Addr().IsLoopback() {
		l.Close()
		return nil, fault.Request("--page", address+" is no address of this machine alone",
			"give one such as 127.0.0.1:8080, and reach it from elsewhere through ssh -L")
	}
	word := make([]byte, 16)
	rand.Read(word) // never fails since Go 1.24
	s := &Server{watch: watch, end: end, control: Control{l.Addr().String(), hex.EncodeToString(word)},
		file: filepath.Join(state, controlName)}
	b, err := json.Marshal(s.control)
	if err == nil {
		err = os.WriteFile(s.file, b, 0o600)
	}
	if err != nil {
		l.Close()
		return nil, fault.File(s.file, "make the folder one with room that can be written", err)
	}
	s.server = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 1 << 14}
	go func() {
		if err := s.server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			_ = os.Remove(s.file) // nobody can be told: the control file says that there is no page
		}
	}()
	return s, nil
}

// URL opens the page, with the word that lets it end the study.
func (s *Server) URL() string { return "http://" + s.control.Address + "/#" + s.control.Token }

// Close ends the page.
func (s *Server) Close() {
	_ = os.Remove(s.file)
	_ = s.server.Close()
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'")
		status, _ := s.watch.Status()
		state, err := json.Marshal(status) // which no text of it can leave: <, > and & are escaped
		if err != nil {
			http.Error(w, "no state", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(bytes.Replace(html, []byte("{{STATE}}"), state, 1))
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		status, _ := s.watch.Status()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(status)
	})
	mux.HandleFunc("GET /events", s.events)
	if s.end != nil {
		mux.HandleFunc("POST /abort", s.abort)
	}
	mux.Handle("GET /metrics", metrics(s.watch))
	return s.local(mux)
}

// local refuses requests that name another host: a page elsewhere that leads a
// browser here.
func (s *Server) local(next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(s.control.Address)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != s.control.Address && r.Host != "localhost:"+port {
			http.Error(w, "another host", http.StatusForbidden)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// events sends the state whenever it changes, at most five times a second.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	flusher, ok := w.(http.Flusher)
	if !ok {
		http.Error(w, "no streams here", http.StatusNotImplemented)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		status, changed := s.watch.Status()
		b, err := json.Marshal(status)
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", b); err != nil {
			return
		}
		flusher.Flush()
		for _, wait := range []<-chan struct{}{after(r.Context(), 200*time.Millisecond), changed} {
			select {
			case <-wait:
			case <-r.Context().Done():
				return
			}
		}
	}
}

// after is closed after a time.
func after(ctx context.Context, d time.Duration) <-chan struct{} {
	done, cancel := context.WithTimeout(ctx, d)
	context.AfterFunc(done, cancel)
	return done.Done()
}

// abort ends the study for who knows the word.
func (s *Server) abort(w http.ResponseWriter, r *http.Request) {
	given := r.Header.Get("Authorization")
	if subtle.ConstantTimeCompare([]byte(given), []byte("Bearer "+s.control.Token)) != 1 {
		http.Error(w, "the word is missing", http.StatusForbidden)
		return
	}
	if err := s.end("its operator ended it"); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// collector gives Prometheus the state of a study.
type collector struct {
	watch *study.Watch
	descs map[string]*prometheus.Desc
}

// metrics serves the state of a study and how long steps take.
func metrics(watch *study.Watch) http.Handler {
	registry := prometheus.NewRegistry()
	c := &collector{watch: watch, descs: make(map[string]*prometheus.Desc)}
	for name, help := range map[string]string{"sums_total": "Sums that are done.",
		"refused_total": "Messages and frames that were refused.", "ended": "1 when the study has ended."} {
		c.descs[name] = prometheus.NewDesc("cohort_study_"+name, help, nil, nil)
	}
	for name, help := range map[string]string{"party_bytes_sent_total": "Bytes of messages of a party.",
		"party_bytes_received_total": "Bytes of messages to a party.",
		"party_late":                 "1 while a party is late.", "party_late_steps_total": "Deadlines that a party missed.",
		"party_agreed": "1 when a party has agreed to the roster."} {
		c.descs[name] = prometheus.NewDesc("cohort_study_"+name, help, []string{"party"}, nil)
	}
	steps := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cohort_study_step_seconds",
		Help:    "Time from the beginning of a step of a sum to a party's answer.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18)}, []string{"step"})
	watch.Listen(func(e study.Event) {
		if e.Kind == study.Answered {
			steps.WithLabelValues(e.Step).Observe(e.Took.Seconds())
		}
	})
	registry.MustRegister(c, steps)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	status, _ := c.watch.Status()
	give := func(name string, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(c.descs[name], kind, value, labels...)
	}
	flag := map[bool]float64{true: 1}
	give("sums_total", prometheus.CounterValue, float64(status.Sums))
	give("refused_total", prometheus.CounterValue, float64(status.Refused))
	give("ended", prometheus.GaugeValue, flag[status.Ended])
	for _, p := range status.Parties {
		name := p.Name
		if p.Server {
			name += " (server)" // which may have a party's name
		}
		give("party_bytes_sent_total", prometheus.CounterValue, float64(p.Sent), name)
		give("party_bytes_received_total", prometheus.CounterValue, float64(p.Received), name)
		give("party_late", prometheus.GaugeValue, flag[p.Late], name)
		give("party_late_steps_total", prometheus.CounterValue, float64(p.LateSteps), name)
		give("party_agreed", prometheus.GaugeValue, flag[p.Agreed], name)
	}
}

// Find reads the control file of a state folder.
func Find(state string) (*Control, error) {
	file := filepath.Join(state, controlName)
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.Failed(file, "cannot be read: no coordinator runs there", "start it with cohort serve", err)
	}
	c := new(Control)
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fault.Failed(file, "is no control file", "start cohort serve again", err)
	}
	return c, nil
}

// Ask sends a request to the page: "status" is read, "abort" is an order.
func (c *Control) Ask(ctx context.Context, what string) (*study.Status, error) {
	how := http.MethodGet
	if what == "abort" {
		how = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, how, "http://"+c.Address+"/"+what, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fault.Failed("coordinator", "does not answer", "start it with cohort serve", err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return nil, nil
	case resp.StatusCode != http.StatusOK:
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return nil, fault.Failed("coordinator", "answers "+strings.TrimSpace(string(why)), "see its log", nil)
	}
	status := new(study.Status)
	return status, json.NewDecoder(resp.Body).Decode(status)
}
