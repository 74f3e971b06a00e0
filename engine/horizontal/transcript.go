package horizontal

// Sight is one thing that one party holds or sees in a round.
type Sight struct {
	// Viewer is the client's index, or engine.Server.
	Viewer int
	// Round counts from 0.
	Round int
	// What names it: one of the constants below.
	What string
	// Of is the client whose value it is, or engine.Server for a sum.
	Of int
	// Message holds the bytes of a masked message, nil for plain values.
	Message []byte
	// Values holds plain values in integer units, nil for masked messages.
	Values []int64
}

// What a party may see (the columns of Thesis-H Tables 5.1 to 5.3, 7.2, 7.3, and
// the masked messages that stand for them).
const (
	LocalSums       = "local sums"
	LocalCounts     = "local counts"
	LocalMeans      = "local means"
	GlobalSums      = "global sums"
	GlobalCounts    = "global counts"
	GlobalCentroids = "global centroids"
	MaskedLocal     = "masked local values"
	MaskedGlobal    = "masked global values"
)

// Transcript records what every party sees, for tests, audits and teaching.
// Recording allocates.
type Transcript struct{ Sights []Sight }

func (t *Transcript) message(viewer, round int, what string, of int, b []byte) {
	if t != nil {
		t.Sights = append(t.Sights, Sight{Viewer: viewer, Round: round, What: what, Of: of, Message: append([]byte(nil), b...)})
	}
}

func (t *Transcript) values(viewer, round int, what string, of int, v []int64) {
	if t != nil {
		t.Sights = append(t.Sights, Sight{Viewer: viewer, Round: round, What: what, Of: of, Values: append([]int64(nil), v...)})
	}
}
