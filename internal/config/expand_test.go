package config

import "testing"

func TestExpand(t *testing.T) {
	vars := &variables{
		env: map[string]string{
			"HOST": "db.example", "HOSTPORT": "db.example:3306", "V6": "::1", "SOCKET": "/run/db.sock", "PORT": "3306", "SCHEME": "mysql",
			"PASS": "p@ss/w#rd?%&=:$+ é", "NAME": "shop/eu", "URL": "mysql://u:p%40@h/d", "EMPTY": "", "DOLLAR": "${HOST}", "LIST": "a:1,b:2",
		},
		file: map[string]dotenvValue{"FILED": {text: "from the file"}, "HOST": {text: "not this"}, "NULL": {null: true}}, fileName: ".env",
	}
	const escaped = "p%40ss%2Fw%23rd%3F%25%26%3D%3A%24%2B%20%C3%A9"
	for _, c := range []struct{ text, want, fault string }{
		{text: "plain $HOST {x} $", want: "plain $HOST {x} $"},
		{text: "a${HOST}b${FILED}", want: "adb.examplebfrom the file"},
		{text: "$${HOST} costs $$5", want: "${HOST} costs $$5"},
		{text: "${DOLLAR}", want: "${HOST}"},
		{text: "${PASS}", want: "p@ss/w#rd?%&=:$+ é"},
		{text: "${URL}", want: "mysql://u:p%40@h/d"},
		{text: "mysql://${PASS}:${PASS}@${HOST}:${PORT}/${NAME}?a=${PASS}#${PASS}", want: "mysql://" + escaped + ":" + escaped + "@db.example:3306/shop%2Feu?a=" + escaped + "#" + escaped},
		{text: "mysql://u@${HOSTPORT}/x", want: "mysql://u@db.example:3306/x"},
		{text: "postgres://${LIST}/x", want: "postgres://a:1,b:2/x"},
		{text: "${SCHEME}://${V6}/x", want: "mysql://[::1]/x"},
		{text: "redis://[${V6}]:6379", want: "redis://[::1]:6379"},
		{text: "fcgi+unix:${SOCKET}?root=${NAME}", want: "fcgi+unix:%2Frun%2Fdb.sock?root=shop%2Feu"},
		{text: "file:${SOCKET}", want: "file:/run/db.sock"},
		{text: "see ${NAME}, http://x/${NAME}", want: "see shop/eu, http://x/shop/eu"},
		{text: "mysql://${PASS}/x", fault: "variable PASS stands for the host or port of a URL and holds neither"},
		{text: "mysql://h:${SOCKET}/x", fault: "variable SOCKET stands for the host or port of a URL and holds neither"},
		{text: "${PASS}://h", fault: "variable PASS stands for a URL's scheme and holds none"},
		{text: "${NONE}", fault: "variable NONE is set neither in the environment nor in .env"},
		{text: "${EMPTY}", fault: "variable EMPTY is empty in the environment; give it a value"},
		{text: "${NULL}", fault: "variable NULL is null in .env; give it a value"},
		{text: "${NONE}${EMPTY}", fault: "variable NONE is set neither in the environment nor in .env; variable EMPTY is empty in the environment; give it a value"},
		{text: "${HOST", fault: badVariable},
		{text: "${HOST:-x}", fault: badVariable},
		{text: "${}", fault: badVariable},
		{text: "\x00${HOST}", fault: "holds a NUL byte"},
	} {
		got, err := vars.expand(c.text)
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		if got != c.want || fault != c.fault {
			t.Errorf("%s\ngot  %q, %q\nwant %q, %q", c.text, got, fault, c.want, c.fault)
		}
	}
}

const badVariable = "holds a ${ that begins no variable: write ${NAME}, without defaults or spaces, or $${ for the two characters themselves"
