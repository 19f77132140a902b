package dev.tollgate;

import java.util.Map;
import java.util.Set;

/** An answer of the server that is not what was asked for. */
public final class ApiException extends TollgateException {
    private static final long serialVersionUID = 1;

    private static final Set<String> CODES = Set.of("bad_method", "value_too_long", "bad_text");

    private final int status;
    private final String code;
    private final String detail;
    private final String field;

    ApiException(int status, Map<String, Object> problem) {
        super("Tollgate: " + status + " " + text(problem, "code") + ": " + text(problem, "detail"), null);
        this.status = status;
        this.code = text(problem, "code");
        this.detail = text(problem, "detail");
        this.field = text(problem, "field");
    }

    private static String text(Map<String, Object> problem, String name) {
        return problem.get(name) instanceof String text ? text : "";
    }

    public int status() {
        return status;
    }

    /** The stable code of the problem. */
    public String code() {
        return code;
    }

    public String detail() {
        return detail;
    }

    /** The field of the request that is wrong; empty if it is none. */
    public String field() {
        return field;
    }

    /**
     * True if a text that a user of the application sent is malformed: method or path, which servers could read in different ways, or a value that
     * is no text or longer than the server reads. Never pass such a request on.
     */
    public boolean isPath() {
        if (status == 413) return true;
        return status == 400 && (field.equals("endpoint") || code.startsWith("path_") || CODES.contains(code));
    }
}
