package dev.tollgate.conformance;

import dev.tollgate.Tollgate;
import dev.tollgate.servlet.LimitOptions;
import dev.tollgate.servlet.TollgateFilter;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/** The example application as plain servlets, in Tomcat. */
final class ServletApp {
    private ServletApp() {}

    static void serve(Tollgate tollgate, LimitOptions options) throws Exception {
        var tomcat = new Tomcat();
        var folder = Files.createTempDirectory("tollgate-conformance").toFile();
        tomcat.setBaseDir(folder.getPath());
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        var context = tomcat.addContext("", folder.getPath());
        var filter = new FilterDef();
        filter.setFilterName("tollgate");
        filter.setFilter(new TollgateFilter(tollgate, options));
        filter.setAsyncSupported("true");
        context.addFilterDef(filter);
        var mapping = new FilterMap();
        mapping.setFilterName("tollgate");
        mapping.addURLPattern("/*");
        context.addFilterMap(mapping);
        Tomcat.addServlet(context, "orders", new Orders());
        context.addServletMappingDecoded("/api/orders/*", "orders");
        context.addServletMappingDecoded("/api/fail", "orders");
        context.addServletMappingDecoded("/api/complete/*", "orders");
        context.addServletMappingDecoded("/health", "orders");
        tomcat.start();
        Main.ready(tomcat.getConnector().getLocalPort());
    }

    /** All routes, by what the container mapped. */
    private static final class Orders extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
            var rest = request.getPathInfo() == null ? "" : request.getPathInfo().substring(1);
            var method = request.getMethod().equals("HEAD") ? "GET" : request.getMethod();
            switch (method + " " + request.getServletPath()) {
                case "GET /api/orders" -> {
                    if (rest.isEmpty() || rest.contains("/")) response.sendError(404);
                    else response.getWriter().write("{\"order\":\"" + rest + "\"}");
                }
                case "POST /api/orders" -> {
                    response.setStatus(201);
                    response.getWriter().write("{\"created\":true}");
                }
                case "GET /api/fail" -> throw new IllegalStateException("this handler fails");
                case "GET /health" -> response.getWriter().write("ok");
                case "POST /api/complete" -> {
                    if (rest.equals("fail")) throw new IllegalStateException("this handler fails");
                    response.setHeader("X-Tokens", rest);
                    response.getWriter().write("{\"tokens\":" + rest + "}");
                }
                default -> response.sendError(404);
            }
        }
    }
}
