package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/bench"
	"github.com/cohort-engine/cohort/bench/table"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
)

func newDataFetchHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "fetch-help NAME",
		Short:   "Say where a benchmark's data set comes from and how to convert it",
		Example: "  cohort data fetch-help har",
		Args:    arguments(1, 1, "name a data set that cohort bench reads, such as har"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := bench.SetName(args[0])
			o, err := bench.FindOrigin(name)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			convert := o.Convert
			if strings.Contains(convert, "--") && !strings.Contains(convert, "builtin:") {
				convert = "cohort data import " + name + " " + convert + " --out DIR, then cohort bench ... --data-dir DIR"
			}
			checksum := o.SHA256
			if checksum == "" {
				checksum = "not known: no copy was at hand"
			}
			for _, line := range [][2]string{{"from", o.From}, {"page", o.URL}, {"licence", o.Licence}, {"shape", o.Shape},
				{"sha256", checksum}, {"convert", convert}} {
				if line[1] == "" {
					continue
				}
				for i, text := range table.Fold(line[1], textWidth(out)-10) {
					head := line[0]
					if i > 0 {
						head = ""
					}
					fmt.Fprintf(out, "%-10s%s\n", head, text)
				}
			}
			return nil
		},
	}
}

// importOptions are the flags of data import.
type importOptions struct {
	files        fileOptions
	out          string
	k, pca, rows int
	read         []string // the files that are converted
}

func newDataImportCommand() *cobra.Command {
	o := new(importOptions)
	cmd := &cobra.Command{
		Use:   "import NAME FILE ...",
		Short: "Convert a file into a benchmark's data set",
		Long: `Convert files of your own into a data set that cohort bench reads: the records of all
files one after the other as CSV, their labels, and an entry in the manifest.json of
the folder, which is made where there is none. cohort data fetch-help NAME says what
a paper's set is made of; both take the papers' names, too.`,
		Example: "  cohort data import har X_train.txt X_test.txt --labels y_train.txt,y_test.txt --pca 10 --k 6 --out data",
		Args:    arguments(2, math.MaxInt, "give the set's name and the files to convert"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], args[1:], cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	o.files.bind(fs)
	fs.StringVar(&o.out, "out", "", "folder to put the set into (needed)")
	fs.IntVar(&o.k, "k", 0, "clusters that suites look for (needed)")
	fs.IntVar(&o.pca, "pca", 0, "keep this many principal axes instead of the columns")
	fs.IntVar(&o.rows, "rows", 0, "keep the first rows alone (default all)")
	return cmd
}

// run converts the files.
func (o *importOptions) run(ctx context.Context, name string, files []string, out io.Writer) error {
	name = bench.SetName(name)
	origin, err := bench.FindOrigin(name)
	if err != nil {
		return err
	}
	switch {
	case o.out == "":
		return fault.Request("--out", "is not given", "name the folder to put the set into")
	case o.k < 1:
		return fault.Request("--k", "is not given", "say how many clusters the suites look for: "+origin.Shape)
	case o.rows < 0 || o.pca < 0:
		return fault.Request("--rows and --pca", "are negative", "give numbers above 0, or leave them out")
	}
	read, err := o.files.read(0)
	if err != nil {
		return err
	}
	o.read = append(strings.Split(o.files.labels, ","), files...)
	t, err := dataset.Open(ctx, strings.Join(files, ","), read)
	if err != nil {
		return err
	}
	if o.rows > 0 && o.rows < t.N {
		t.Rows, t.N = t.Rows[:o.rows*t.D], o.rows
		t.Labels = t.Labels[:min(len(t.Labels), o.rows)]
	}
	if o.k > t.N {
		return fault.Request("--k", fmt.Sprintf("is %d for %s", o.k, fault.Count(t.N, "record")),
			"give at most the number of records")
	}
	if o.pca > 0 {
		if err := principalAxes(t, o.pca); err != nil {
			return err
		}
	}
	return o.write(name, origin, t, out)
}

// principalAxes replaces the columns by the coordinates on the first axes.
func principalAxes(t *dataset.Table, axes int) error {
	if axes > min(t.D, t.N) {
		return fault.Request("--pca", fmt.Sprintf("is %d for %s of %s", axes, fault.Count(t.N, "record"),
			fault.Count(t.D, "column")),
			"give at most the lesser of both")
	}
	var pc stat.PC
	records := mat.NewDense(t.N, t.D, t.Rows)
	if !pc.PrincipalComponents(records, nil) {
		return fault.Failed("--pca", "the decomposition did not converge", "check the columns for extreme values", nil)
	}
	var vectors, projected mat.Dense
	pc.VectorsTo(&vectors)
	projected.Mul(records, vectors.Slice(0, t.D, 0, axes))
	t.Rows, t.D, t.Columns = projected.RawMatrix().Data, axes, nil
	return nil
}

// write puts the set, its labels and its entry into the folder.
func (o *importOptions) write(name string, origin bench.Origin, t *dataset.Table, out io.Writer) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fault.Failed("--out", err.Error(), "name a folder that can be written", err)
	}
	t.Columns = nil // the sets have no header
	var text bytes.Buffer
	if err := dataset.Write(&text, t); err != nil {
		return err
	}
	entry := map[string]any{"name": name, "file": name + ".csv", "format": "csv", "rows": t.N, "cols": t.D, "k": o.k,
		"labels_file": nil}
	sum := sha256.Sum256(text.Bytes())
	entry["sha256"] = hex.EncodeToString(sum[:])
	path := filepath.Join(o.out, name+".csv")
	if err := writeWhole("--out", path,
		func(w io.Writer) error { _, err := w.Write(text.Bytes()); return err }, o.read...); err != nil {
		return err
	}
	if t.Labels != nil {
		labels := name + ".labels.csv"
		entry["labels_file"] = labels
		if err := writeWhole("--out", filepath.Join(o.out, labels),
			func(w io.Writer) error { return dataset.WriteLabels(w, t.Labels) }, o.read...); err != nil {
			return err
		}
	}
	if err := o.enter(name, entry); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s, %s, k = %d, sha256 %s\n", path, fault.Count(t.N, "record"), fault.Count(t.D, "column"),
		o.k, entry["sha256"])
	if origin.SHA256 != "" && origin.SHA256 != entry["sha256"] {
		fmt.Fprintf(out, "The set that the suites were measured with has sha256 %s: this is another one, or it is "+
			"written differently.\n", origin.SHA256)
	}
	shape := fmt.Sprintf("%d x %d, k = %d", t.N, t.D, o.k)
	if origin.SHA256 == "" && strings.Contains(origin.Shape, " x ") && origin.Shape != shape { // all that is known of it
		fmt.Fprintf(out, "The papers' set is %s: this is another one.\n", origin.Shape)
	}
	return nil
}

// enter adds the set to the folder's manifest, in place of one of the same name.
func (o *importOptions) enter(name string, entry map[string]any) error {
	path := filepath.Join(o.out, "manifest.json")
	manifest := map[string]any{"version": 1}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fault.File(path, "check the folder given with --out", err)
	default:
		if err := json.Unmarshal(text, &manifest); err != nil {
			return fault.File(path, "mend the file or name another folder", err)
		}
	}
	old, _ := manifest["sets"].([]any)
	sets := []any{entry}
	for _, s := range old {
		if m, ok := s.(map[string]any); !ok || m["name"] != name {
			sets = append(sets, s)
		}
	}
	manifest["sets"] = sets
	return writeWhole("--out", path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(manifest)
	}, o.read...)
}
