package fail

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"

	"github.com/redis/rueidis"
)

// diagnoses are names for what servers say of a mistake in the configuration. The text of a reply has the
// first of a pair.
var diagnoses = [][2]string{
	{"WRONGPASS", "wrong user or password"},
	{"invalid password", "wrong user or password"},
	{"NOAUTH", "a password is needed"},
	{"called without any password", "the server has no password"},
	{"DB index", "no such database"},
	{"SELECT is not allowed", "no such database"},
	{"No such master", "Sentinel does not know the master"},
	{"NOPERM", "not permitted"},
	{"DENIED", "not permitted"},
	{"unknown command", "the server, or a proxy before it, lacks a command"},
}

// diagnosis names what is wrong with a configuration, when that is why Redis does not serve: waiting does not
// help. It is empty when the error may pass by itself.
func diagnosis(err error) string {
	var (
		reply       *rueidis.RedisError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		remote      *net.OpError
	)
	switch {
	case errors.Is(err, ErrUnavailable):
		return ""
	case errors.As(err, &reply):
		for _, d := range diagnoses {
			if strings.Contains(reply.Error(), d[0]) {
				return d[1]
			}
		}
	case errors.As(err, &certificate):
		return "the certificate of the server is not accepted"
	case errors.As(err, &record):
		return "the server does not speak TLS there"
	case errors.As(err, &remote) && remote.Op == "remote error": // an alert of TLS
		return "the server refuses the TLS handshake"
	}
	return ""
}
