package dev.tollgate.retry;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Pattern;

/** How long a response says to wait. A field that cannot be read is as good as none. */
final class NamedWait {
    private static final int FIELD_MAX = 8192;
    /** More than any deadline, and far from an overflow: a tenth is added to it. */
    private static final Duration WAIT_MAX = Duration.ofDays(36_500);

    private static final Pattern DIGITS = Pattern.compile("[0-9]{1,30}");
    private static final String QUOTED = "\"(?:[^\"\\\\]|\\\\.)*+\"";
    private static final String KEY = "[a-z*][a-z0-9_\\-.*]*+";
    private static final String VALUE = "(?:" + QUOTED + "|[^\",; \\t]*+)";
    private static final Pattern PARAMETER = Pattern.compile(";[ \\t]*+(" + KEY + ")=(" + VALUE + ")");
    /** One item of draft 11: a name, quoted or not, then parameters. */
    private static final Pattern POLICY = Pattern.compile(
            "[ \\t]*+(?:" + QUOTED + "|[^\",;= \\t]++)((?:[ \\t]*+;[ \\t]*+" + KEY + "(?:=" + VALUE + ")?+)*+)[ \\t]*+(,|$)");
    private static final Pattern DRAFT_07 = Pattern.compile("(?:^|,)[ \\t]*reset=([0-9]{1,30})[ \\t]*(?:,|$)");

    private record Reader(String name, Function<String, Optional<Duration>> read) {}

    private final Instant now;
    private final List<Reader> readers = List.of(
            new Reader("Retry-After", this::retryAfter),
            new Reader("RateLimit", this::rateLimit),
            new Reader("RateLimit-Reset", NamedWait::seconds),
            new Reader("X-RateLimit-Reset", this::reset));

    private NamedWait(Instant now) {
        this.now = now;
    }

    /** Empty if the response names no time, or one that is not in the future. */
    static Optional<Duration> of(Retrier.Response response, Instant now) {
        for (var reader : new NamedWait(now).readers) {
            var value = String.join(", ", response.fields(reader.name())).strip();
            if (value.isEmpty() || value.length() > FIELD_MAX) continue;
            var wait = reader.read().apply(value);
            if (wait.isPresent()) return wait.filter(time -> time.compareTo(Duration.ZERO) > 0);
        }
        return Optional.empty();
    }

    private static Optional<Duration> seconds(String value) {
        if (!DIGITS.matcher(value).matches()) return Optional.empty();
        var digits = value.replaceFirst("^0+(?=.)", "");
        if (digits.length() > 12) return Optional.of(WAIT_MAX);
        var wait = Duration.ofSeconds(Long.parseLong(digits));
        return Optional.of(wait.compareTo(WAIT_MAX) > 0 ? WAIT_MAX : wait);
    }

    private Optional<Duration> retryAfter(String value) {
        var wait = seconds(value);
        if (wait.isPresent()) return wait;
        try {
            return Optional.of(Duration.between(now, ZonedDateTime.parse(value, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant()));
        } catch (DateTimeException e) {
            return Optional.empty();
        }
    }

    /** Seconds from now, or a moment in seconds or milliseconds since 1970. */
    private Optional<Duration> reset(String value) {
        if (!DIGITS.matcher(value).matches()) return Optional.empty();
        var digits = value.replaceFirst("^0+(?=.)", "");
        if (digits.length() > 17) return Optional.of(WAIT_MAX);
        var number = Long.parseLong(digits);
        if (number > 1_000_000_000_000L) return Optional.of(Duration.between(now, Instant.ofEpochMilli(number)));
        if (number > 1_000_000_000L) return Optional.of(Duration.between(now, Instant.ofEpochSecond(number)));
        return Optional.of(Duration.ofSeconds(number));
    }

    /** Draft 11, the longest wait of the policies that have nothing left, or draft 07. */
    private Optional<Duration> rateLimit(String value) {
        Duration spent = null;
        Duration all = null;
        var item = POLICY.matcher(value);
        var at = 0;
        while (at < value.length()) {
            if (!item.region(at, value.length()).lookingAt()) return draft07(value); // nowhere else: fields may be hostile
            at = item.end();
            Optional<Duration> wait = Optional.empty();
            var left = "";
            var parameter = PARAMETER.matcher(item.group(1));
            while (parameter.find()) {
                if (parameter.group(1).equals("t")) wait = seconds(parameter.group(2));
                if (parameter.group(1).equals("r")) left = parameter.group(2);
            }
            if (wait.isEmpty()) continue;
            all = longer(all, wait.get());
            if (left.equals("0")) spent = longer(spent, wait.get());
        }
        if (spent != null) return Optional.of(spent);
        return all == null ? draft07(value) : Optional.of(all);
    }

    private static Optional<Duration> draft07(String value) {
        var match = DRAFT_07.matcher(value);
        return match.find() ? seconds(match.group(1)) : Optional.empty();
    }

    private static Duration longer(Duration one, Duration two) {
        return one == null || one.compareTo(two) < 0 ? two : one;
    }
}
