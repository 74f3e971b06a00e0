package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study"
	"github.com/cohort-engine/cohort/engine/study/bus"
	"github.com/cohort-engine/cohort/engine/study/page"
	"github.com/cohort-engine/cohort/engine/study/trace"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/pages"
	"github.com/cohort-engine/cohort/internal/wholefile"
)

// serveFlags are the flags of cohort serve.
type serveFlags struct {
	listen, reach, state, page, out, format, tokens string
	nats, natsCA, natsUsers                         string
	traces                                          string
	certificate, key                                string
	workers                                         int
}

func newServeCommand() *cobra.Command {
	o := new(serveFlags)
	cmd := &cobra.Command{
		Use:   "serve STUDY",
		Short: "Coordinate a study: carry messages and add up masked sums",
		Long: `Coordinate a study. One invitation for each party is printed, and for each further server of
a study that shares sums: give each to its owner alone. Whoever is interrupted goes on by
the same command.`,
		Example: "  cohort serve study.json --listen 0.0.0.0:4222 --reach coordinator.example.org:4222",
		Args:    arguments(1, 1, "name the study file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.serve(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.listen, "listen", "127.0.0.1:4222", "HOST:PORT where parties connect")
	fs.StringVar(&o.reach, "reach", "", "HOST:PORT by which parties reach this machine (default that of --listen)")
	fs.StringVar(&o.certificate, "certificate", "",
		"PEM file of the server's certificate with its authority's behind it (default: an authority of the study's own)")
	fs.StringVar(&o.key, "certificate-key", "", "PEM file of the certificate's key")
	fs.StringVar(&o.nats, "nats", "",
		"URL of a NATS cluster that carries the messages, in place of --listen, such as tls://nats.example.org:4222")
	fs.StringVar(&o.natsCA, "nats-ca", "", "PEM file of the cluster's authority (default: the machine's authorities)")
	fs.StringVar(&o.natsUsers, "nats-users", "nats-users.conf", "file to write the users that the cluster must let in to")
	fs.StringVar(&o.state, "state", "coordinator",
		"folder of the journal, which must outlive this process")
	fs.StringVar(&o.tokens, "tokens", "", "folder for the invitations, one file for each party, instead of printing them")
	fs.StringVar(&o.page, "page", "127.0.0.1:0", "address of the operator's page, on this machine alone; none for none")
	fs.StringVar(&o.traces, "traces", "", tracesHelp)
	fs.StringVar(&o.out, "out", "", "folder to write the result to, where the coordinator learns it")
	choose(fs, &o.format, "format", "text or json", "text", "json")
	fs.IntVar(&o.workers, "workers", 0, "worker threads (default all cores)")
	return cmd
}

func (o *serveFlags) serve(ctx context.Context, file string, out, errOut io.Writer) error {
	s, err := readStudy(file)
	if err != nil {
		return err
	}
	if err := folderWritable(o.out); err != nil {
		return err
	}
	if (o.certificate == "") != (o.key == "") {
		return fault.Request("--certificate", "and --certificate-key belong together", "give both or neither")
	}
	pages.Heap()
	eng, err := newEngine(o.workers)
	if err != nil {
		return err
	}
	defer eng.Close()
	watch := study.NewWatch(s)
	with := study.Serve{Study: s, State: o.state, Listen: o.listen, Reach: o.reach, NATS: o.nats, Users: o.writeUsers,
		Certificate: o.certificate, Key: o.key,
		Log: slog.New(slog.NewTextHandler(errOut, nil)), Engine: eng, Watch: watch}
	if o.natsCA != "" {
		text, err := wholefile.Read(o.natsCA, wholefile.PEM)
		if err != nil {
			return fault.Failed("--nats-ca", err.Error(), "name the PEM file of the cluster's authority", err)
		}
		if with.Authority, err = bus.Authority(text); err != nil {
			return err
		}
	}
	c, err := study.NewCoordinator(with)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.page != "none" {
		p, err := page.Listen(o.page, o.state, watch, c.End)
		if err != nil {
			return err
		}
		defer p.Close()
		fmt.Fprintf(errOut, "page: %s\n", p.URL())
	}
	traced, err := startTraces(ctx, o.traces, "study "+s.ID, watch, with.Log)
	if err != nil {
		return err
	}
	defer traced()
	if err := o.invite(s, c, out); err != nil {
		return err
	}
	res, err := c.Run(ctx)
	if err != nil {
		return err
	}
	if res.Centroids == nil {
		_, err = fmt.Fprintln(out, "The study has ended. Its parties have the result.")
		return err
	}
	return deliverStudy(s, res, &options{format: o.format, out: o.out}, out)
}

// tracesHelp is the help of --traces.
const tracesHelp = "URL of an OpenTelemetry collector (OTLP over HTTP) that is sent when sums and their steps began " +
	"and ended, such as http://127.0.0.1:4318"

// startTraces sends the course of a study to a collector, if one is named, until the function
// that it returns is called.
func startTraces(ctx context.Context, collector, name string, watch *study.Watch, log *slog.Logger) (func(), error) {
	if collector == "" {
		return func() {}, nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("the collector", "why", err.Error()) }))
	t, err := trace.Start(ctx, collector, name, watch)
	if err != nil {
		return nil, err
	}
	return func() {
		if err := t.Close(); err != nil {
			log.Warn("the collector lacks the end of the traces", "why", err.Error())
		}
	}, nil
}

// writeUsers writes what the cluster's configuration must have.
func (o *serveFlags) writeUsers(text string) error {
	if err := os.WriteFile(o.natsUsers, []byte(text), 0o644); err != nil {
		return unwritable("--nats-users", o.natsUsers, err)
	}
	return nil
}

// invite hands out the invitations.
func (o *serveFlags) invite(s *study.Study, c *study.Coordinator, out io.Writer) error {
	if o.tokens != "" {
		if err := os.MkdirAll(o.tokens, 0o700); err != nil {
			return fault.Failed("--tokens", err.Error(), "name a folder that can be made", err)
		}
	}
	for _, v := range c.Invitations() {
		role := protocol.Role(v.Party)
		if o.tokens == "" {
			if _, err := fmt.Fprintf(out, "invitation of %s:\n  %s\n", s.Name(role), v.Token()); err != nil {
				return err
			}
			continue
		}
		file := filepath.Join(o.tokens, strings.ReplaceAll(role.String(), " ", "")+".token")
		if err := writeToken(file, v.Token()); err != nil {
			return unwritable("--tokens", file, err)
		}
	}
	return nil
}

// writeToken writes an invitation to a file of its own, which takes the place of one that is there: that
// may be one that others can read, or lead elsewhere.
func writeToken(file, token string) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".token*") // its owner's alone
	if err != nil {
		return err
	}
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
