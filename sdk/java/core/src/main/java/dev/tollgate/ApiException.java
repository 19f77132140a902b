package dev.tollgate;

import java.util.Map;

/** An answer of the server that is not what was asked for. */
public final class ApiException extends TollgateException {
    private static final long serialVersionUID = 1;

    private final int status;
    private final String code;
    private final String detail;

    ApiException(int status, Map<String, Object> problem) {
        super("Tollgate: " + status + " " + text(problem, "code") + ": " + text(problem, "detail"), null);
        this.status = status;
        this.code = text(problem, "code");
        this.detail = text(problem, "detail");
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

    /**
     * True if method or path of an endpoint are malformed, which a user of the application sent: servers could read them in different ways.
     * Never pass such a request on.
     */
    public boolean isPath() {
        return status == 400 && (code.startsWith("path_") || code.equals("bad_method"));
    }
}
