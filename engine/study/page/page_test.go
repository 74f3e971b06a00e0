package page

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine/study"
)

// ask asks a page as a browser does that names a host.
func ask(t *testing.T, s *Server, how, path, host, word string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, how, "http://"+s.control.Address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	if word != "" {
		r.Header.Set("Authorization", "Bearer "+word)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// A page is on this machine alone, answers to no other host's name, and ends the study for who has the word; a
// party's cannot end it. A title is no program.
func TestWhoIsAnswered(t *testing.T) {
	if s, err := Listen("0.0.0.0:0", t.TempDir(), study.NewPartyWatch(), nil); err == nil {
		s.Close()
		t.Error("a page can be reached from other machines")
	}
	watch, ended := study.NewWatch(&study.Study{Title: `</script><script>x`}), 0
	operator, err := Listen("127.0.0.1:0", t.TempDir(), watch, func(string) error { ended++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	party, err := Listen("127.0.0.1:0", t.TempDir(), watch, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer party.Close()
	if info, err := os.Stat(operator.file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the word: %v, %v", info.Mode(), err)
	}
	for i, c := range []struct {
		s                     *Server
		how, path, host, word string
		status, ended         int
	}{
		{operator, "GET", "/", "", "", http.StatusOK, 0},
		{operator, "GET", "/", "rebound.example.org", "", http.StatusForbidden, 0},
		{operator, "GET", "/status", "rebound.example.org", "", http.StatusForbidden, 0},
		{operator, "GET", "/events", "rebound.example.org", "", http.StatusForbidden, 0},
		{operator, "GET", "/metrics", "rebound.example.org", "", http.StatusForbidden, 0},
		{operator, "POST", "/abort", "rebound.example.org", operator.control.Token, http.StatusForbidden, 0},
		{operator, "POST", "/abort", "", "", http.StatusForbidden, 0},
		{operator, "POST", "/abort", "", party.control.Token, http.StatusForbidden, 0},
		{operator, "GET", "/abort", "", operator.control.Token, http.StatusMethodNotAllowed, 0},
		{party, "POST", "/abort", "", party.control.Token, http.StatusNotFound, 0},
		{operator, "POST", "/abort", "", operator.control.Token, http.StatusNoContent, 1},
	} {
		status, body := ask(t, c.s, c.how, c.path, c.host, c.word)
		if status != c.status || ended != c.ended {
			t.Errorf("%d: %s %s of %q: %d, ended %d times", i, c.how, c.path, c.host, status, ended)
		}
		if strings.Contains(body, "<script>x") {
			t.Errorf("a title has become a program: %s", body)
		}
		if strings.Contains(body, operator.control.Token) || strings.Contains(body, party.control.Token) {
			t.Errorf("%s tells the word to who asks", c.path)
		}
	}
}

// A page leads nowhere else: it has no address of another host, and the browser is told so.
func TestNoExternalAsset(t *testing.T) {
	if text := string(html); strings.Contains(text, "//") || strings.Contains(text, "src=") ||
		strings.Contains(text, "href=") || strings.Contains(text, "@import") {
		t.Error("the page names something else")
	}
	s, err := Listen("127.0.0.1:0", t.TempDir(), study.NewPartyWatch(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get(fmt.Sprintf("http://%s/", s.control.Address))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") ||
		strings.Contains(policy, "http") {
		t.Errorf("the page's policy is %q", policy)
	}
}
