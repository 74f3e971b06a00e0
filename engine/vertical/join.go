package vertical

import (
	"cmp"
	"fmt"
	"hash"
	"slices"

	"github.com/minio/sha256-simd"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// Digest identifies a record to the parties' keyed functions. An id of up to 11
// bytes stands for itself, so such ids never collide: zeros, its length plus 1 in
// byte 11, and zeros for the count of arrivals. Of a longer one it is the first 16
// bytes of SHA-256 over the shared secret, a domain and the id. Among n ids two share
// an arrival with probability at most n^2 L 2^-128, where a record has L arrivals
// looked at: below 2^-64 for 10^9 ids, whose L is hardly more than 1.
type Digest = [16]byte

// shortID is the longest id that is its own digest.
const shortID = 11

// Domains of the digests, so that a record, a phantom and a key never share one.
const (
	domainRecord  = 1
	domainPhantom = 2
	domainKey     = 3
	domainJoin    = 4
)

// Secret is what the parties share and the server never sees. Its text forms
// are redacted.
type Secret [32]byte

// String hides the secret.
func (Secret) String() string { return "vertical.Secret(redacted)" }

// GoString hides the secret.
func (s Secret) GoString() string { return s.String() }

// NewSecret draws a secret from the streams of a run.
func NewSecret(streams *privacy.Streams) (s Secret) {
	_, _ = streams.Stream(-1, 0, "shared secret").Read(s[:]) // never fails
	return s
}

// hasher computes digests without allocating.
type hasher struct {
	secret Secret
	state  hash.Hash
	sum    [sha256.Size]byte
	header [33]byte
}

func newHasher(secret Secret) *hasher {
	h := &hasher{secret: secret, state: sha256.New()}
	copy(h.header[:], secret[:])
	return h
}

func (h *hasher) digest(domain byte, data []byte) (d Digest) {
	h.header[len(h.header)-1] = domain
	h.state.Reset()
	h.state.Write(h.header[:])
	h.state.Write(data)
	copy(d[:], h.state.Sum(h.sum[:0]))
	return d
}

// record is the digest of a record's id.
func (h *hasher) record(id []byte) (d Digest) {
	if len(id) > shortID {
		return h.digest(domainRecord, id)
	}
	copy(d[:], id)
	d[shortID] = byte(len(id)) + 1
	return d
}

// JoinReport counts what a join found.
type JoinReport struct {
	// Matched is the number of records whose id occurs exactly once at every party.
	Matched int
	// Unmatched and Duplicate count, per party, the records whose id another
	// party lacks, and the records whose id occurs more than once at this party.
	Unmatched, Duplicate []int
}

// String says it in a sentence for the report.
func (r *JoinReport) String() string {
	return fmt.Sprintf("joined by id: %d records matched; left out per party: unmatched %v, duplicate %v", r.Matched, r.Unmatched, r.Duplicate)
}

// Join matches the records of several parties by id. Ids are compared as
// SHA-256 digests under the shared secret, as the parties would. ids[l] lists
// party l's ids in row order; the result has, for each party, its row numbers
// of the matched records, all in the same order, which depends on the ids and
// the secret alone.
//
// Unmatched and duplicate ids are refused unless inner is set; an inner join
// leaves out unmatched records and every record of an id that some party has
// more than once, since which of them is meant cannot be told.
func Join(secret Secret, ids [][]string, inner bool) (rows [][]int, report JoinReport, err error) {
	type record struct {
		digest [sha256.Size]byte
		row    int
	}
	parties := make([][]record, len(ids))
	report = JoinReport{Unmatched: make([]int, len(ids)), Duplicate: make([]int, len(ids))}
	var header [33]byte
	copy(header[:], secret[:])
	header[len(header)-1] = domainJoin
	for l, list := range ids {
		parties[l] = make([]record, len(list))
		for i, id := range list {
			parties[l][i] = record{sha256.Sum256(append(header[:len(header):len(header)], id...)), i}
		}
		slices.SortFunc(parties[l], func(a, b record) int {
			return cmp.Or(slices.Compare(a.digest[:], b.digest[:]), a.row-b.row)
		})
	}
	rows = make([][]int, len(ids))
	at := make([]int, len(ids))
	for {
		// The smallest digest that any party still has.
		first := -1
		for l, i := range at {
			if i < len(parties[l]) && (first < 0 || slices.Compare(parties[l][i].digest[:], parties[first][at[first]].digest[:]) < 0) {
				first = l
			}
		}
		if first < 0 {
			break
		}
		digest := parties[first][at[first]].digest
		matched := true
		for l, list := range parties {
			n := 0
			for at[l]+n < len(list) && list[at[l]+n].digest == digest {
				n++
			}
			if n > 1 {
				report.Duplicate[l] += n
			}
			matched = matched && n == 1
		}
		missing := false
		for l, list := range parties {
			missing = missing || at[l] >= len(list) || list[at[l]].digest != digest
		}
		for l, list := range parties {
			for at[l] < len(list) && list[at[l]].digest == digest {
				if matched {
					rows[l] = append(rows[l], list[at[l]].row)
				} else if missing {
					report.Unmatched[l]++
				}
				at[l]++
			}
		}
		if matched {
			report.Matched++
		}
	}
	bad := 0
	for l := range ids {
		bad += report.Unmatched[l] + report.Duplicate[l]
	}
	if bad > 0 && !inner {
		return nil, report, fault.Failed("join", fmt.Sprintf("unmatched ids per party %v, duplicate ids per party %v, matched %d",
			report.Unmatched, report.Duplicate, report.Matched), "repair the files, or use --join inner to keep the ids that every party has exactly once", nil)
	}
	if report.Matched == 0 {
		return nil, report, fault.Failed("join", "no id occurs at every party", "check the id columns", nil)
	}
	return rows, report, nil
}

// JoinTables matches the records of one table per party by id (Table.IDs) and
// returns one table with the columns of all, the ids of its records, and the
// split that gives every party its own columns. Labels are left out.
func JoinTables(secret Secret, tables []*dataset.Table, inner bool) (*dataset.Table, Split, JoinReport, error) {
	ids := make([][]string, len(tables))
	for l, t := range tables {
		ids[l] = t.IDs
	}
	rows, report, err := Join(secret, ids, inner)
	if err != nil {
		return nil, nil, report, err
	}
	joined := &dataset.Table{Name: "joined records", N: report.Matched}
	split := make(Split, len(tables))
	named := true
	for l, t := range tables {
		for c := range t.D {
			split[l] = append(split[l], joined.D+c)
		}
		joined.D += t.D
		named = named && t.Columns != nil
	}
	joined.Rows = make([]float64, 0, joined.N*joined.D)
	for i := range joined.N {
		for l, t := range tables {
			joined.Rows = append(joined.Rows, t.Row(rows[l][i])...)
		}
		joined.IDs = append(joined.IDs, ids[0][rows[0][i]])
	}
	if named {
		for _, t := range tables {
			joined.Columns = append(joined.Columns, t.Columns...)
		}
	}
	return joined, split, report, nil
}
