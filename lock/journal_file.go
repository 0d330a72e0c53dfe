package lock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
)

// An entry is a debt on its way into the journal.
type entry struct {
	number  uint64
	payload []byte
	err     error
}

// entries numbers the debts and encodes them as they are now.
func (j *Journal) entries(debts []*debt) []entry {
	all := make([]entry, len(debts))
	for i, d := range debts {
		j.mu.Lock()
		j.last++
		d.saved = j.last
		j.writing[d.saved] = false
		j.mu.Unlock()
		all[i].number = d.saved
		all[i].payload, all[i].err = encodeDebt(d, j.seal)
	}
	return all
}

// write returns when the entries are on disk. Its error means that some may not
// be.
func (j *Journal) write(entries []entry) error {
	var errs []error
	j.mu.Lock()
	for _, e := range entries {
		paid := j.writing[e.number]
		delete(j.writing, e.number)
		if paid {
			continue
		}
		if e.err == nil {
			e.err = j.append(e.number, e.payload)
		}
		errs = append(errs, e.err)
	}
	mine := j.written
	j.mu.Unlock()
	return errors.Join(append(errs, j.sync(mine))...)
}

// append writes one payload behind the others. The caller holds mu.
func (j *Journal) append(number uint64, payload []byte) error {
	b := frame(nil, payload)
	n := int64(len(b))
	if j.size+n > j.most {
		if err := j.rewrite(); err != nil {
			return err
		}
		if j.size+n > j.most {
			return ErrJournalFull
		}
	}
	if err := j.put(b); err != nil {
		return err
	}
	j.live[number] = span{j.size - n, n}
	j.bytes += n
	return nil
}

// put writes b at the end. The caller holds mu.
func (j *Journal) put(b []byte) error {
	if _, err := j.file.WriteAt(b, j.size); err != nil {
		// What was written of it lies behind the end, and the next write over it.
		return fmt.Errorf("settle journal: %w", err)
	}
	j.size += int64(len(b))
	j.written++
	return nil
}

// sync returns when the first n writes are on disk. Those who come while it is
// under way share the next.
func (j *Journal) sync(n int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= n {
		return nil
	}
	j.mu.Lock()
	upTo, file := j.written, j.file
	j.mu.Unlock()
	if err := file.Sync(); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.file == file {
			return fmt.Errorf("settle journal: %w", err)
		}
		// The file was rewritten in the meantime, and with it all that is owed.
	}
	j.synced = upTo
	return nil
}

// strike takes paid debts off. It is not on disk at once: what comes back after
// a crash is paid again, which changes nothing.
func (j *Journal) strike(paid map[*debt]bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b []byte
	for d := range paid {
		s, ok := j.live[d.saved]
		if !ok {
			if _, soon := j.writing[d.saved]; soon {
				j.writing[d.saved] = true
			}
			continue
		}
		delete(j.live, d.saved)
		j.bytes -= s.size
		b = frame(b, binary.AppendUvarint([]byte{payloadStrike}, d.saved))
	}
	if len(b) > 0 {
		// Where this fails, they are paid again after a restart.
		_ = j.put(b)
	}
	if j.size > journalIdle && j.bytes < j.size/2 || len(j.live) == 0 {
		_ = j.rewrite()
	}
}

// rewrite makes the file anew with what is still owed. Where it fails, the old
// file stays. The caller holds mu.
func (j *Journal) rewrite() error {
	if len(j.live) == 0 {
		if err := j.file.Truncate(int64(len(journalMagic))); err != nil {
			return fmt.Errorf("settle journal: %w", err)
		}
		j.size, j.bytes = int64(len(journalMagic)), 0
		return nil
	}
	next, live, size, err := j.copyLive()
	if err != nil {
		return fmt.Errorf("rewrite settle journal: %w", err)
	}
	old := j.file
	j.file, j.live, j.size, j.bytes = next, live, size, size-int64(len(journalMagic))
	if err := old.Close(); err != nil {
		return fmt.Errorf("rewrite settle journal: %w", err)
	}
	return nil
}

// copyLive writes what is owed to a new file, which it puts in the place of the
// old one.
func (j *Journal) copyLive() (next *os.File, live map[uint64]span, size int64, err error) {
	path := j.path + ".new"
	next, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, nil, 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, next.Close(), os.Remove(path))
		}
	}()
	if err := lockFile(next); err != nil {
		return nil, nil, 0, err
	}
	b := []byte(journalMagic)
	live = make(map[uint64]span, len(j.live))
	numbers := make([]uint64, 0, len(j.live))
	for n := range j.live {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		s := j.live[n]
		record := make([]byte, s.size)
		if _, err := j.file.ReadAt(record, s.at); err != nil {
			return nil, nil, 0, err
		}
		live[n] = span{size + int64(len(b)), s.size}
		b = append(b, record...)
		if len(b) >= journalIdle {
			if _, err := next.WriteAt(b, size); err != nil {
				return nil, nil, 0, err
			}
			size, b = size+int64(len(b)), b[:0]
		}
	}
	if _, err := next.WriteAt(b, size); err != nil {
		return nil, nil, 0, err
	}
	size += int64(len(b))
	if err := next.Sync(); err != nil {
		return nil, nil, 0, err
	}
	if err := os.Rename(path, j.path); err != nil {
		return nil, nil, 0, err
	}
	return next, live, size, syncDir(filepath.Dir(j.path))
}

// scan reads a file's records. Size is then up to where it is sound.
func (j *Journal) scan(data []byte) error {
	if len(data) < len(journalMagic) {
		j.Found.Torn = int64(len(data))
		return nil
	}
	if string(data[:len(journalMagic)]) != journalMagic {
		return errors.New("is no settle journal of this version; move it away")
	}
	debts := map[uint64]*debt{}
	bad, at := 0, len(journalMagic)
	j.size = int64(at)
	for {
		payload, n := unframe(data[at:])
		if n == 0 {
			break
		}
		at += n
		if payload == nil || !j.record(payload, span{int64(at - n), int64(n)}, debts) {
			bad++
			continue
		}
		// What is sound behind it shows that the bad was no torn end.
		j.Found.Damaged += bad
		bad, j.size = 0, int64(at)
	}
	j.Found.Torn = int64(len(data)) - j.size
	j.Found.Owed = len(debts)
	for n := range j.live {
		j.found = append(j.found, debts[n])
		j.bytes += j.live[n].size
	}
	slices.SortFunc(j.found, func(a, b *debt) int { return int(int64(a.saved) - int64(b.saved)) })
	return nil
}

// record takes one payload in, and reports whether it could be read.
func (j *Journal) record(payload []byte, s span, debts map[uint64]*debt) bool {
	if payload[0] == payloadStrike {
		n, w := binary.Uvarint(payload[1:])
		if w <= 0 || w != len(payload)-1 {
			return false
		}
		delete(debts, n)
		delete(j.live, n)
		j.last = max(j.last, n)
		return true
	}
	d, err := decodeDebt(payload)
	if err != nil {
		return false
	}
	debts[d.saved], j.live[d.saved] = d, s
	j.last = max(j.last, d.saved)
	return true
}

// unframe returns the first payload and its size with the head: nil and a size
// where the checksum is wrong; nil and zero where there is no whole record.
func unframe(b []byte) (payload []byte, size int) {
	if len(b) < journalHead {
		return nil, 0
	}
	n := binary.LittleEndian.Uint32(b)
	if n == 0 || uint64(n) > uint64(len(b)-journalHead) {
		return nil, 0
	}
	size = journalHead + int(n)
	payload = b[journalHead:size]
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, size
	}
	return payload, size
}

// syncDir makes the names in a folder durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("settle journal: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("settle journal: %w", err)
	}
	return nil
}
