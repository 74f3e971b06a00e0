package page

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine/study"
)

// FuzzRequests sends pages what any program on the machine, and any page that a browser shows, may send: nothing
// but the word ends a study, and who names another host is told nothing.
func FuzzRequests(f *testing.F) {
	ended := 0
	s := &Server{watch: study.NewWatch(&study.Study{Title: "secret title"}), control: Control{"127.0.0.1:1", "word"},
		end: func(string) error { ended++; return nil }}
	handler := s.handler()
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
		"GET /status HTTP/1.1\r\nHost: localhost:1\r\n\r\n",
		"GET http://127.0.0.1:1/status HTTP/1.1\r\nHost: rebound.example.org\r\n\r\n",
		"GET /metrics HTTP/1.0\r\n\r\n",
		"GET /events HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
		"POST /abort HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer word\r\n\r\n",
		"POST /abort HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer wore\r\nAuthorization: Bearer word\r\n\r\n",
		"POST //abort HTTP/1.1\r\nHost: 127.0.0.1:1.\r\nContent-Length: 99\r\n\r\nx",
		"HEAD /../abort HTTP/1.1\r\nHost: [::1]:1\r\n\r\n",
	} {
		f.Add(request)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		gone, cancel := context.WithCancel(context.Background()) // who asks hangs up: events have no end
		cancel()
		before, w := ended, httptest.NewRecorder()
		handler.ServeHTTP(w, r.WithContext(gone))
		own := r.Host == "127.0.0.1:1" || r.Host == "localhost:1"
		asked := own && r.Method == http.MethodPost && r.URL.Path == "/abort" &&
			r.Header.Get("Authorization") == "Bearer word"
		if (ended > before) != asked {
			t.Fatalf("ended %v by %q", ended > before, text)
		}
		if !own && (w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "secret")) {
			t.Fatalf("%q is told %d %q", text, w.Code, w.Body)
		}
	})
}
