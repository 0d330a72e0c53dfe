package keyextract

import (
	"bytes"
	"regexp"
	"strings"

	"oncegate/internal/phpvars"
)

// maxParts bounds the parts of a multipart form, files included: PHP's
// max_input_vars and max_file_uploads together.
const maxParts = maxFields + 20

// parseMultipart reads the fields of a multipart/form-data body. Parsers of such
// bodies differ on the fine points, so this one takes only what all of them read
// alike: the boundary's text stands nowhere but in delimiters, line ends are
// CRLF, headers are not folded. (mime/multipart is laxer than PHP in some ways
// and stricter in others.)
func parseMultipart(body []byte, boundary string) ([]field, *Error) {
	delimiter := []byte("--" + boundary)
	sections := bytes.SplitN(body, delimiter, maxParts+3)
	if len(sections) > maxParts+2 {
		return nil, malformed("more than %d parts", maxParts)
	}
	last := len(sections) - 1
	if start := string(sections[0]); last < 1 || start != "" && start != "\r\n" {
		return nil, malformed("the multipart body does not begin with its boundary")
	}
	if end := sections[last]; string(end) != "--" && string(end) != "--\r\n" {
		return nil, malformed("the multipart body does not end with its boundary")
	}
	var fields []field
	for _, section := range sections[1:last] {
		part, ok := bytes.CutPrefix(section, []byte("\r\n"))
		if ok {
			part, ok = bytes.CutSuffix(part, []byte("\r\n"))
		}
		head, value, cut := bytes.Cut(part, []byte("\r\n\r\n"))
		if !ok || !cut {
			return nil, malformed("a part of the multipart body is not framed by line ends")
		}
		name, file, err := partName(string(head))
		if err != nil {
			return nil, err
		}
		parsed := phpvars.Name(name)
		if parsed == nil {
			continue
		}
		if file {
			// The app has it in another place, but some frameworks merge the two.
			fields = append(fields, field{append(parsed, phpvars.AnyItem), ""})
			continue
		}
		fields = append(fields, field{parsed, string(value)})
	}
	if len(fields) > maxFields {
		return nil, malformed("more than %d fields", maxFields)
	}
	return fields, nil
}

// partName reads the head of a part.
func partName(head string) (name string, file bool, err *Error) {
	var disposition string
	for line := range strings.SplitSeq(head, "\r\n") {
		key, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(line, "\r\n\x00") || strings.ContainsAny(key, " \t") {
			return "", false, malformed("a part of the multipart body has a broken header")
		}
		if !strings.EqualFold(key, "Content-Disposition") {
			continue
		}
		if disposition != "" {
			return "", false, malformed("a part of the multipart body says its name twice")
		}
		disposition = value
	}
	match := formData.FindStringSubmatch(disposition)
	if match == nil {
		return "", false, malformed("a part of the multipart body has no plain form-data name")
	}
	return match[1] + match[2], match[3] != "", nil
}

// formData is how a name is commonly written. PHP reads some other spellings
// that RFC 7578 allows as other names, or none: 'x' in single quotes, "\"
// inside a name, blanks before "=".
var formData = regexp.MustCompile(`^ ?(?i:form-data); ?(?i:name)=(?:"([^"'\\]*)"|([\w.\[\]-]+))` +
	`(; ?(?i:filename)="(?:[^"\\]|\\.)*"(?:; ?(?i:filename)\*=[^"';]*''[^"';]*)?)?$`)
