package delivery

import "strings"

// Codings returns the content codings that compress the body, in lower case and
// in the order in which Content-Encoding names them. Any other word there
// ("UTF-8", "identity") is no coding, and the body is what it is.
//
// Who reads the body with a coding undone, and who reads it as it was sent, may
// read two different ones: a form can hold the compressed text of another.
func (d *Delivery) Codings() []string {
	var codings []string
	for word := range strings.SplitSeq(strings.Join(d.Header["Content-Encoding"], ","), ",") {
		switch word = strings.ToLower(strings.Trim(word, " \t")); word {
		case "gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip", // registered for HTTP
			"bzip2", "lz4", "lzma", "snappy", "xz": // not, and met all the same
			codings = append(codings, word)
		}
	}
	return codings
}
