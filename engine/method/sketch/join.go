package sketch

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
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
func (Secret) String() string { return "sketch.Secret(redacted)" }

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

// rowDigest is record of the id of a record that has no other: its row number in 8
// bytes, little endian.
func rowDigest(row int) (d Digest) {
	const length = 8
	binary.LittleEndian.PutUint64(d[:length], uint64(row))
	d[shortID] = length + 1
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
	return fmt.Sprintf("joined by id: %s matched; left out per party: unmatched %v, duplicate %v",
		fault.Count(r.Matched, "record"), r.Unmatched, r.Duplicate)
}

// joinRecord is a row with the keyed digest of its id.
type joinRecord struct {
	high, low uint64
	row       int
}

func compareJoin(a, b joinRecord) int {
	switch {
	case a.high != b.high:
		return cmp.Compare(a.high, b.high)
	case a.low != b.low:
		return cmp.Compare(a.low, b.low)
	}
	return a.row - b.row
}

// sameID reports whether two records have one digest.
func (r joinRecord) sameID(o joinRecord) bool { return r.high == o.high && r.low == o.low }

// joinBuckets is the number of parts, by the first byte of the digest, that are
// joined by themselves.
const joinBuckets = 256

// abreast runs fn(i) for i in [0, n) on as many goroutines as there are CPUs.
func abreast(n int, fn func(i int)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				fn(i)
			}
		})
	}
	wait.Wait()
}

// joinBlock is the number of ids that a goroutine takes at a time.
const joinBlock = 1 << 14

// blocksAbreast runs fn on the blocks of [0, n).
func blocksAbreast(n int, fn func(block, lo, hi int)) {
	abreast((n+joinBlock-1)/joinBlock, func(b int) { fn(b, b*joinBlock, min((b+1)*joinBlock, n)) })
}

// joinKey gives ids the digests by which they are joined: AES-128 of an id of up to 15
// bytes with its length, a permutation, under a key from the secret, so that such ids
// never share one; the first 16 bytes of SHA-256 over the secret, a domain and the id for
// longer ones, of which two among n share one with probability at most n^2 2^-129, 2^-69
// for 10^9.
type joinKey struct {
	secret      Secret
	permutation cipher.Block
}

func newJoinKey(secret Secret) *joinKey {
	key := newHasher(secret).digest(domainKey, []byte("join"))
	permutation, err := aes.NewCipher(key[:])
	if err != nil {
		panic("vertical: " + err.Error()) // 16 bytes are a key
	}
	return &joinKey{secret, permutation}
}

// digests passes on the digest of each id.
func (k *joinKey) digests(ids []string, each func(i int, d *Digest)) {
	h := newHasher(k.secret)
	var text []byte
	d := new(Digest) // it escapes into the cipher
	for i, id := range ids {
		text = append(text[:0], id...)
		if len(text) < len(d) {
			clear(d[copy(d[:], text):])
			d[len(d)-1] = byte(len(text))
			k.permutation.Encrypt(d[:], d[:])
		} else {
			*d = h.digest(domainJoin, text)
		}
		each(i, d)
	}
}

// newJoinRecord is a row's record.
func newJoinRecord(d *Digest, row int) joinRecord {
	return joinRecord{binary.BigEndian.Uint64(d[:]), binary.BigEndian.Uint64(d[8:]), row}
}

// buckets are a party's records by the first byte of their digests, in row order.
type buckets [joinBuckets][]joinRecord

// newBuckets puts n records, of which fill makes those from lo on, into buckets.
func newBuckets(n int, fill func(lo int, dst []joinRecord)) (all buckets) {
	records, room := make([]joinRecord, n), make([]joinRecord, n)
	places := make([][joinBuckets]int, (n+joinBlock-1)/joinBlock)
	blocksAbreast(n, func(b, lo, hi int) {
		fill(lo, records[lo:hi])
		for _, r := range records[lo:hi] {
			places[b][r.high>>56]++
		}
	})
	end := 0
	for bucket := range all {
		begin := end
		for b := range places {
			places[b][bucket], end = end, end+places[b][bucket]
		}
		all[bucket] = room[begin:end]
	}
	blocksAbreast(n, func(b, lo, hi int) {
		next := &places[b]
		for _, r := range records[lo:hi] {
			at := &next[r.high>>56]
			room[*at] = r
			*at++
		}
	})
	return all
}

// joinDigests returns the digests of a party's ids in buckets.
func joinDigests(secret Secret, ids []string) buckets {
	key := newJoinKey(secret)
	return newBuckets(len(ids), func(lo int, dst []joinRecord) {
		key.digests(ids[lo:lo+len(dst)], func(i int, d *Digest) { dst[i] = newJoinRecord(d, lo+i) })
	})
}

// sortBucket sorts the records of one bucket: by as many bits after the first byte as
// leave a few records together, then those.
func sortBucket(list []joinRecord) {
	few := min(bits.Len(uint(len(list)/4)), 16)
	shift := 56 - few
	ends := make([]int, 1<<few)
	part := func(r joinRecord) uint64 { return r.high >> shift & (1<<few - 1) }
	for _, r := range list {
		ends[part(r)]++
	}
	sum := 0
	for i, n := range ends {
		ends[i] = sum
		sum += n
	}
	sorted := make([]joinRecord, len(list))
	for _, r := range list {
		at := &ends[part(r)]
		sorted[*at] = r
		*at++
	}
	begin := 0
	for _, end := range ends {
		if end-begin > 1 {
			slices.SortFunc(sorted[begin:end], compareJoin)
		}
		begin = end
	}
	copy(list, sorted)
}

// joinBucket joins the records of one bucket, one list per party, which it sorts.
func joinBucket(parties [][]joinRecord) (rows [][]int, report JoinReport) {
	rows = make([][]int, len(parties))
	report = JoinReport{Unmatched: make([]int, len(parties)), Duplicate: make([]int, len(parties))}
	for _, list := range parties {
		sortBucket(list)
	}
	counts := make([]int, len(parties))
	for {
		// The smallest digest that any party still has.
		first := -1
		for l, list := range parties {
			if len(list) > 0 && (first < 0 || compareJoin(list[0], parties[first][0]) < 0) {
				first = l
			}
		}
		if first < 0 {
			return rows, report
		}
		record, matched, missing := parties[first][0], true, false
		for l, list := range parties {
			n := 0
			for n < len(list) && list[n].sameID(record) {
				n++
			}
			counts[l] = n
			if n > 1 {
				report.Duplicate[l] += n
			}
			matched, missing = matched && n == 1, missing || n == 0
		}
		for l, n := range counts {
			if matched {
				rows[l] = append(rows[l], parties[l][0].row)
			} else if missing {
				report.Unmatched[l] += n
			}
			parties[l] = parties[l][n:]
		}
		if matched {
			report.Matched++
		}
	}
}

// join matches the records of several parties by id. Ids are compared as digests
// under the shared secret, as the parties would. ids[l] lists party l's ids in row
// order; the result has, for each party, its row numbers of the matched records, all
// in the same order, which depends on the ids and the secret alone.
//
// Unmatched and duplicate ids are refused unless inner is set; an inner join
// leaves out unmatched records and every record of an id that some party has
// more than once, since which of them is meant cannot be told.
func join(secret Secret, ids [][]string, inner bool) (rows [][]int, report JoinReport, err error) {
	digests := make([]buckets, len(ids))
	for l, list := range ids {
		digests[l] = joinDigests(secret, list)
	}
	return joinAll(digests, inner)
}

// JoinDigests are the keyed digests of a party's ids, in row order, for parties that
// are joined elsewhere: whoever has them and lacks the secret sees which records of
// several parties have one id, and no id.
func JoinDigests(secret Secret, ids []string) []Digest {
	key, all := newJoinKey(secret), make([]Digest, len(ids))
	blocksAbreast(len(ids), func(_, lo, hi int) {
		key.digests(ids[lo:hi], func(i int, d *Digest) { all[lo+i] = *d })
	})
	return all
}

// MatchDigests is join on digests.
func MatchDigests(digests [][]Digest, inner bool) (rows [][]int, report JoinReport, err error) {
	all := make([]buckets, len(digests))
	for l, list := range digests {
		all[l] = newBuckets(len(list), func(lo int, dst []joinRecord) {
			for i := range dst {
				dst[i] = newJoinRecord(&list[lo+i], lo+i)
			}
		})
	}
	return joinAll(all, inner)
}

// joinAll joins the buckets of all parties.
func joinAll(digests []buckets, inner bool) (rows [][]int, report JoinReport, err error) {
	var parts [joinBuckets]struct {
		rows   [][]int
		report JoinReport
	}
	abreast(joinBuckets, func(b int) {
		lists := make([][]joinRecord, len(digests))
		for l := range lists {
			lists[l] = digests[l][b]
		}
		parts[b].rows, parts[b].report = joinBucket(lists)
	})
	rows = make([][]int, len(digests))
	report = JoinReport{Unmatched: make([]int, len(digests)), Duplicate: make([]int, len(digests))}
	bad := 0
	for _, p := range parts {
		report.Matched += p.report.Matched
	}
	for l := range rows {
		rows[l] = make([]int, 0, report.Matched)
	}
	for _, p := range parts {
		for l := range digests {
			rows[l] = append(rows[l], p.rows[l]...)
			report.Unmatched[l] += p.report.Unmatched[l]
			report.Duplicate[l] += p.report.Duplicate[l]
			bad += p.report.Unmatched[l] + p.report.Duplicate[l]
		}
	}
	if bad > 0 && !inner {
		return nil, report, fault.Failed("join",
			fmt.Sprintf("unmatched ids per party %v, duplicate ids per party %v, matched %d",
				report.Unmatched, report.Duplicate, report.Matched),
			"repair the files, or use --join inner to keep the ids that every party has exactly once", nil)
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
	rows, report, err := join(secret, ids, inner)
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
	joined.Rows, joined.IDs = make([]float64, joined.N*joined.D), make([]string, joined.N)
	blocksAbreast(joined.N, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := joined.Rows[i*joined.D : (i+1)*joined.D]
			for l, t := range tables {
				row = row[copy(row, t.Row(rows[l][i])):]
			}
			joined.IDs[i] = ids[0][rows[0][i]]
		}
	})
	if named {
		for _, t := range tables {
			joined.Columns = append(joined.Columns, t.Columns...)
		}
	}
	return joined, split, report, nil
}
