package lock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
)

const (
	// DefaultJournalBytes bounds a journal's file where its options don't.
	DefaultJournalBytes = 256 << 20
	// A journal this small is not worth rewriting.
	journalIdle = 1 << 20
	// So many processes can keep a journal in one folder.
	mostJournals = 64

	journalMagic = "oncegate journal 1\n"
	// Before each payload: its length and its CRC-32C, little endian.
	journalHead = 8
)

// ErrJournalFull says that a journal has reached its bound.
var ErrJournalFull = errors.New("the settle journal is full")

// ErrJournalBusy says that every journal of a folder is another process's.
var ErrJournalBusy = errors.New("all settle journals are in use")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Journal keeps on disk what a Gate owes the store, so that it outlives the
// process. It is a file of checked records that only grows, until nothing in it
// is owed any more; then it begins anew. What it holds may be delivered twice,
// which the versions make harmless. It contains answers of the app and, where
// they are kept, requests: nobody but its user can read it, and where they are
// encrypted in the store they are here.
//
// It is safe for concurrent use.
type Journal struct {
	path string
	most int64
	seal func(*Record) error // nil: nothing is encrypted
	// Found says what the files held when they were opened.
	Found JournalFound

	mu    sync.Mutex // guards what follows
	file  *os.File
	size  int64           // up to where the file is sound
	live  map[uint64]span // what is owed, by number
	bytes int64           // of what is owed
	last  uint64          // the last number given
	// writing holds the numbers given to what is not written yet, and whether
	// that was paid in the meantime.
	writing map[uint64]bool
	found   []*debt // until the Gate takes them
	written int64   // counts writes

	syncing sync.Mutex // held through an fsync; taken before mu
	synced  int64      // writes that are on disk; guarded by syncing
}

// JournalFound says what was found in the files of a journal.
type JournalFound struct {
	Owed    int   // writes still owed
	Torn    int64 // bytes cut off at the end of a file: a write that a crash broke off
	Damaged int   // records in the middle that could not be read, and are lost
}

// A span is where a record lies in the file, head included.
type span struct{ at, size int64 }

// OpenJournal opens a journal in a folder, and takes over what other journals
// there still owe whose process has ended. Zero most means
// [DefaultJournalBytes]. Where the file system can't lock files, one process
// has the folder for itself.
func OpenJournal(dir string, most int64) (*Journal, error) { return OpenSealedJournal(dir, most, nil) }

// OpenSealedJournal is OpenJournal for records whose blobs seal encrypts, on a copy
// of its own. The store that is paid later must be able to read them so.
func OpenSealedJournal(dir string, most int64, seal func(*Record) error) (*Journal, error) {
	if most == 0 {
		most = DefaultJournalBytes
	}
	var j *Journal
	for i := range mostJournals {
		path := filepath.Join(dir, fmt.Sprintf("settles-%d.journal", i))
		if _, err := os.Stat(path); j != nil && errors.Is(err, os.ErrNotExist) {
			continue
		}
		next, err := openJournal(path, most, seal)
		switch {
		case errors.Is(err, ErrJournalBusy):
			continue
		case err != nil && j != nil:
			return nil, errors.Join(err, j.Close())
		case err != nil:
			return nil, err
		case j == nil:
			j = next
			continue
		}
		if err := j.adopt(next); err != nil {
			return nil, errors.Join(err, j.Close(), next.Close())
		}
	}
	if j == nil {
		return nil, fmt.Errorf("open a settle journal in %s: %w", dir, ErrJournalBusy)
	}
	return j, nil
}

// openJournal opens, locks and reads one file.
func openJournal(path string, most int64, seal func(*Record) error) (j *Journal, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open settle journal: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if err := lockFile(file); err != nil {
		return nil, fmt.Errorf("lock settle journal %s: %w", path, err)
	}
	if err := file.Chmod(0o600); err != nil {
		return nil, fmt.Errorf("settle journal: %w", err)
	}
	j = &Journal{path: path, most: most, seal: seal, file: file, live: map[uint64]span{}, writing: map[uint64]bool{}}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read settle journal: %w", err)
	}
	if err := j.scan(data); err != nil {
		return nil, fmt.Errorf("settle journal %s: %w", path, err)
	}
	if err := j.file.Truncate(j.size); err != nil {
		return nil, fmt.Errorf("settle journal: %w", err)
	}
	if j.size == 0 {
		if err := j.begin(); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// begin writes the head of an empty file, and makes its name durable.
func (j *Journal) begin() error {
	if _, err := j.file.WriteAt([]byte(journalMagic), 0); err != nil {
		return fmt.Errorf("settle journal: %w", err)
	}
	j.size = int64(len(journalMagic))
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("settle journal: %w", err)
	}
	return syncDir(filepath.Dir(j.path))
}

// adopt takes over what another journal owes, and removes its file.
func (j *Journal) adopt(o *Journal) error {
	for _, d := range o.found {
		d.saved = 0
	}
	if len(o.found) > 0 {
		if err := j.write(j.entries(o.found)); err != nil {
			return err
		}
	}
	j.found = append(j.found, o.found...)
	j.Found.Owed += o.Found.Owed
	j.Found.Torn += o.Found.Torn
	j.Found.Damaged += o.Found.Damaged
	if err := os.Remove(o.path); err != nil {
		return fmt.Errorf("settle journal: %w", err)
	}
	return o.Close()
}

// Close releases the file. What is owed stays in it.
func (j *Journal) Close() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("settle journal: %w", err)
	}
	return nil
}

// take returns what the files owed when they were opened, once.
func (j *Journal) take() []*debt {
	j.mu.Lock()
	defer j.mu.Unlock()
	found := j.found
	j.found = nil
	return found
}

// has reports whether the journal, if there is one, keeps the debt.
func (j *Journal) has(d *debt) bool {
	if j == nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.live[d.saved]
	return ok
}

// frame appends a payload with its head.
func frame(b, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	return append(b, payload...)
}
