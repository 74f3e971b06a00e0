package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/parquet"
	"github.com/cohort-engine/cohort/internal/fault"
)

// fileFormats are the formats that stand apart from package dataset.
var fileFormats = []dataset.Format{parquet.Format}

// fileOptions are the flags that say how data files are read.
type fileOptions struct {
	columns, labels, labelColumn string
	missing, maxMemory, cache    string
	text                         dataset.TextFormat
}

func (f *fileOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.columns, "columns", "",
		"columns to use: names, numbers from 1 or ranges 2-5, comma-separated; -NAME leaves one out (default all)")
	fs.StringVar(&f.labels, "labels", "", "file of true labels, one per row, for label scores")
	fs.StringVar(&f.labelColumn, "label-column", "",
		"column of --data with true labels, numbers or text, by name or number")
	fs.StringVar(&f.missing, "missing", "refuse",
		"missing values (empty, NA, NaN, null, ?): refuse, drop-row or mean-of-bounds")
	fs.StringVar(&f.text.Header, "header", "auto", "yes, no, or auto: a first row without any number names the columns")
	fs.StringVar(&f.text.Separator, "separator", "",
		`character between cells, or blank (default: what the first row has of , tab ; | and blanks)`)
	fs.BoolVar(&f.text.DecimalComma, "decimal-comma", false, "numbers are written 1,5")
	fs.StringVar(&f.text.Comment, "comment", "", "what begins lines to leave out, or none (default #)")
	fs.StringVar(&f.cache, "cache", "",
		"folder for a file of the records as they are used, for sets beyond memory and for the next run on them")
	fs.StringVar(&f.maxMemory, "max-memory", "",
		"most memory for the records, such as 500M or 8G (default what is available)")
}

// read are the options of reading.
func (f *fileOptions) read(workers int) (dataset.ReadOptions, error) {
	missing, err := dataset.ParseMissing(f.missing)
	if err != nil {
		return dataset.ReadOptions{}, err
	}
	if f.labels != "" && f.labelColumn != "" {
		return dataset.ReadOptions{}, fault.Request("--label-column", "is given together with --labels", "give one of them")
	}
	return dataset.ReadOptions{Columns: f.columns, Labels: f.labels, LabelColumn: f.labelColumn, Missing: missing,
		Text:    f.text,
		Workers: workers, Stdin: os.Stdin, Formats: fileFormats}, nil
}

// memory is --max-memory in bytes, 0 if it was not given.
func (f *fileOptions) memory() (int64, error) {
	if f.maxMemory == "" {
		return 0, nil
	}
	text, unit := strings.TrimSuffix(strings.ToUpper(f.maxMemory), "B"), 1.0
	for i, letter := range []string{"K", "M", "G", "T"} {
		if number, ok := strings.CutSuffix(text, letter); ok {
			text, unit = number, float64(int64(1)<<(10*(i+1)))
			break
		}
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x*unit >= 1) || x*unit > 1<<60 {
		return 0, fault.Range("--max-memory", fmt.Sprintf("%q", f.maxMemory), "a size such as 500M or 8G")
	}
	return int64(x * unit), nil
}
