package retry

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const fieldBytesMax = 8192

// waitMax is more than any deadline, and far from an overflow: a tenth is added to it.
const waitMax = 100 * 365 * 24 * time.Hour

// named is how long a response says to wait. A field that cannot be read is as good as none. False if it names no time,
// or one that has passed.
func named(header http.Header, now time.Time) (time.Duration, bool) {
	readers := []struct {
		name string
		read func(string, time.Time) (time.Duration, bool)
	}{
		{"Retry-After", retryAfter},
		{"RateLimit", rateLimit},
		{"RateLimit-Reset", seconds},
		{"X-RateLimit-Reset", reset},
	}
	for _, reader := range readers {
		value := strings.Join(header.Values(reader.name), ", ")
		if value == "" || len(value) > fieldBytesMax {
			continue
		}
		if wait, ok := reader.read(strings.TrimSpace(value), now); ok {
			return wait, wait > 0
		}
	}
	return 0, false
}

var digits = regexp.MustCompile(`^[0-9]{1,30}$`)

func seconds(value string, _ time.Time) (time.Duration, bool) {
	if !digits.MatchString(value) {
		return 0, false
	}
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil || number > int64(waitMax/time.Second) {
		return waitMax, true
	}
	return time.Duration(number) * time.Second, true
}

func retryAfter(value string, now time.Time) (time.Duration, bool) {
	if wait, ok := seconds(value, now); ok {
		return wait, true
	}
	date, err := http.ParseTime(value)
	return date.Sub(now), err == nil
}

// reset reads seconds from now, or a moment in seconds or milliseconds since 1970.
func reset(value string, now time.Time) (time.Duration, bool) {
	wait, ok := seconds(value, now)
	number, err := strconv.ParseInt(value, 10, 64)
	switch {
	case !ok || err != nil:
		return wait, ok
	case number > 1_000_000_000_000:
		return time.UnixMilli(number).Sub(now), true
	case number > 1_000_000_000:
		return time.Unix(number, 0).Sub(now), true
	default:
		return wait, true
	}
}

const (
	quotedText = `"(?:[^"\\]|\\.)*"`
	keyText    = `[a-z*][a-z0-9_\-.*]*`
	valueText  = `(?:` + quotedText + `|[^",; \t]*)`
)

// One item of draft 11: a name, quoted or not, then parameters.
var (
	policyText    = regexp.MustCompile(`^[ \t]*(?:` + quotedText + `|[^",;= \t]+)((?:[ \t]*;[ \t]*` + keyText + `(?:=` + valueText + `)?)*)[ \t]*(,|$)`)
	parameterText = regexp.MustCompile(`;[ \t]*(` + keyText + `)=(` + valueText + `)`)
	draft07Text   = regexp.MustCompile(`(?:^|,)[ \t]*reset=([0-9]{1,30})[ \t]*(?:,|$)`)
)

// rateLimit reads draft 11, the longest wait of the policies that have nothing left, or draft 07.
func rateLimit(value string, now time.Time) (time.Duration, bool) {
	var spent, all time.Duration
	anySpent, any := false, false
	for rest := value; rest != ""; {
		match := policyText.FindStringSubmatchIndex(rest)
		if match == nil {
			any = false
			break
		}
		wait, left, ok := policy(rest[match[2]:match[3]], now)
		rest = rest[match[1]:]
		if !ok {
			continue
		}
		any, all = true, max(all, wait)
		if left == "0" {
			anySpent, spent = true, max(spent, wait)
		}
	}
	if any && anySpent {
		return spent, true
	}
	if any {
		return all, true
	}
	if match := draft07Text.FindStringSubmatch(value); match != nil {
		return seconds(match[1], now)
	}
	return 0, false
}

func policy(parameters string, now time.Time) (wait time.Duration, left string, ok bool) {
	for _, match := range parameterText.FindAllStringSubmatch(parameters, -1) {
		switch match[1] {
		case "t":
			wait, ok = seconds(match[2], now)
		case "r":
			left = match[2]
		}
	}
	return wait, left, ok
}
