package dev.tollgate.servlet;

import jakarta.servlet.http.HttpServletRequest;
import java.util.Locale;
import java.util.regex.Pattern;

/** {@code METHOD /path} of a request, with the path as the container's mapping reads it, still escaped. */
final class Endpoints {
    /** Containers drop {@code ;name=value} from each segment before they map the path to a handler. */
    private static final Pattern PARAMETERS = Pattern.compile(";[^/]*");
    private static final Pattern ESCAPED_LETTER = Pattern.compile("%(4[1-9a-fA-F]|5[0-9aA]|6[1-9a-fA-F]|7[0-9aA])");

    private Endpoints() {}

    static String of(HttpServletRequest request, boolean foldCase) {
        // Containers answer HEAD by the handler of GET.
        var method = request.getMethod().equals("HEAD") ? "GET" : request.getMethod();
        var path = PARAMETERS.matcher(request.getRequestURI()).replaceAll("");
        return method + " " + (foldCase ? folded(path) : path);
    }

    /**
     * Whether a segment is {@code .} or {@code ..}, escaped or not. Tollgate resolves them, and so do some containers; frameworks above them, as
     * Spring, take them for names: {@code /orders/.} would run the handler of {@code /orders/{id}} and be asked about as {@code /orders}.
     */
    static boolean hasDotSegment(HttpServletRequest request) {
        var path = PARAMETERS.matcher(request.getRequestURI()).replaceAll("");
        for (var segment : path.split("/", -1)) {
            var plain = segment.replace("%2e", ".").replace("%2E", ".");
            if (plain.equals(".") || plain.equals("..")) return true;
        }
        return false;
    }

    /** Letters in lower case, escaped ones too. */
    private static String folded(String path) {
        var letters = ESCAPED_LETTER.matcher(path).replaceAll(match -> Character.toString((char) Integer.parseInt(match.group(1), 16)));
        return letters.toLowerCase(Locale.ROOT);
    }
}
