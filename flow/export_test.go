package flow

func (s *Solver) SetTuning(ratio, least, warm int, share float64, wide int64) {
	t := standard
	t.sampleRatio, t.leastSample, t.warmSample, t.freeShare, t.wide = ratio, least, warm, share, wide
	s.tuning = &t
}
