package link

import (
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"hash"
)

// Frames are what a bus carries. All numbers are little-endian.
//
//	data   version kind=1, message u64, chunk u32, size u32 of the sealed message, its bytes from chunk*chunkBytes on
//	ack    version kind=2, durable u64, message u64, chunk u32, gap u8, tag
//	hello  version kind=3, first u64: the first message that the sender still has, tag
//	again  version kind=4, message u64: one that the sender of the frame had received and lacks, tag
//
// An ack may have a data frame behind it in the same message of the bus.
//
// The tag is the first 16 bytes of HMAC-SHA256 under a key of the direction; a message
// as a whole is authenticated by its seal.
//
// An ack says that all messages before durable are on the receiver's disk, and which
// chunk of which message it wants next; gap, that it got another one.
const (
	frameVersion = 2
	frameData    = 1
	frameAck     = 2
	frameHello   = 3
	frameAgain   = 4
	dataHead     = 2 + 8 + 4 + 4
	ackBytes     = 2 + 8 + 8 + 4 + 1 + tagBytes
	helloBytes   = 2 + 8 + tagBytes // as many as of again
	tagBytes     = 16
	// chunkBytes is the longest part of a message in one frame.
	chunkBytes = 1 << 18
	// FrameBytes is the longest message on the bus.
	FrameBytes = chunkBytes + room
	// room is what may stand before the bytes of a chunk.
	room = ackBytes + dataHead
	// sealBytes is what sealing adds to a message.
	sealBytes = 16
)

// errFrame says that a frame is malformed.
var errFrame = errors.New("link: a malformed frame")

// frame is a decoded frame.
type frame struct {
	kind        byte
	message     uint64
	chunk, size uint32
	durable     uint64
	gap         bool
	first       uint64
	bytes       []byte
}

// chunks is the number of chunks of a sealed message.
func chunks(size int) uint32 { return uint32((size + chunkBytes - 1) / chunkBytes) }

// parse decodes a frame that may come from anybody. most bounds a sealed message.
func parse(b []byte, most int) (f frame, err error) {
	if len(b) < 2 || b[0] != frameVersion {
		return f, errFrame
	}
	f.kind = b[1]
	switch {
	case f.kind == frameData && len(b) > dataHead:
		f.message, f.chunk, f.size = binary.LittleEndian.Uint64(b[2:]), binary.LittleEndian.Uint32(b[10:]),
			binary.LittleEndian.Uint32(b[14:])
		f.bytes = b[dataHead:]
		if int64(f.size) > int64(most) || f.size < sealBytes || f.chunk >= chunks(int(f.size)) {
			return frame{}, errFrame
		}
		if want := min(chunkBytes, int(f.size)-int(f.chunk)*chunkBytes); len(f.bytes) != want {
			return frame{}, errFrame
		}
	case f.kind == frameAck && len(b) == ackBytes && b[ackBytes-tagBytes-1] <= 1:
		f.durable, f.message, f.chunk = binary.LittleEndian.Uint64(b[2:]), binary.LittleEndian.Uint64(b[10:]),
			binary.LittleEndian.Uint32(b[18:])
		f.gap = b[ackBytes-tagBytes-1] == 1
		if f.message < f.durable {
			return frame{}, errFrame
		}
	case f.kind == frameHello && len(b) == helloBytes:
		f.first = binary.LittleEndian.Uint64(b[2:])
	case f.kind == frameAgain && len(b) == helloBytes:
		f.message = binary.LittleEndian.Uint64(b[2:])
	default:
		return frame{}, errFrame
	}
	return f, nil
}

// ahead splits the ack off that stands before a data frame; it is nil if there is none.
func ahead(b []byte) (ack, rest []byte) {
	if len(b) > ackBytes && b[0] == frameVersion && b[1] == frameAck {
		return b[:ackBytes], b[ackBytes:]
	}
	return nil, b
}

// tagLabel begins what is tagged.
var tagLabel = []byte("link frame")

// tag appends what authenticates a frame without data, under a key of HMAC-SHA256.
func tag(mac hash.Hash, b, frame []byte) []byte {
	mac.Reset()
	mac.Write(tagLabel)
	mac.Write(frame)
	return mac.Sum(b)[:len(b)+tagBytes]
}

// genuine checks the tag of a frame without data.
func (e *End) genuine(mac hash.Hash, b []byte) bool {
	body := len(b) - tagBytes
	e.frame = tag(mac, e.frame[:0], b[:body])
	return hmac.Equal(e.frame, b[body:])
}

// append encodes a frame, without its tag.
func (f *frame) append(b []byte) []byte {
	b = append(b, frameVersion, f.kind)
	switch f.kind {
	case frameData:
		b = binary.LittleEndian.AppendUint64(b, f.message)
		b = binary.LittleEndian.AppendUint32(b, f.chunk)
		b = binary.LittleEndian.AppendUint32(b, f.size)
		return append(b, f.bytes...)
	case frameAck:
		b = binary.LittleEndian.AppendUint64(b, f.durable)
		b = binary.LittleEndian.AppendUint64(b, f.message)
		b = binary.LittleEndian.AppendUint32(b, f.chunk)
		if f.gap {
			return append(b, 1)
		}
		return append(b, 0)
	case frameAgain:
		return binary.LittleEndian.AppendUint64(b, f.message)
	}
	return binary.LittleEndian.AppendUint64(b, f.first)
}
