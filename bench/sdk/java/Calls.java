import dev.tollgate.Json;
import dev.tollgate.Request;
import dev.tollgate.Settings;
import dev.tollgate.Tollgate;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;

/** What a check costs a program in Java, beside the call that people write by hand: CPU time of this process per call. */
public final class Calls {
    private static final int ROUNDS = 9;

    public static void main(String[] arguments) throws Exception {
        var url = arguments[0];
        var calls = Integer.parseInt(arguments[1]);
        var http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        var body = "{\"api_key\":\"abc\",\"endpoint\":\"GET /api/orders/7\"}";
        var tollgate = new Tollgate(Settings.fromEnvironment().url(url).timeout(Duration.ofSeconds(10)));
        Map<String, Callable<Boolean>> candidates = new LinkedHashMap<>();
        candidates.put("java HttpClient", () -> {
            var request = HttpRequest.newBuilder(URI.create(url + "/v1/check"))
                    .header("Content-Type", "application/json")
                    .POST(HttpRequest.BodyPublishers.ofString(body))
                    .build();
            return (Boolean) Json.object(http.send(request, HttpResponse.BodyHandlers.ofString()).body()).get("allowed");
        });
        candidates.put("java client", () -> tollgate.check(Request.of().apiKey("abc").endpoint("GET /api/orders/7")).isAllowed());
        var times = new LinkedHashMap<String, ArrayList<Double>>();
        // The first rounds compile.
        for (var round = -3; round < ROUNDS; round++) {
            for (var candidate : candidates.entrySet()) {
                var start = cpu();
                for (var call = 0; call < calls; call++) {
                    if (!candidate.getValue().call()) throw new IllegalStateException("refused");
                }
                var spent = (cpu() - start) / (double) calls;
                if (round >= 0) times.computeIfAbsent(candidate.getKey(), name -> new ArrayList<>()).add(spent);
            }
        }
        times.forEach((name, rounds) -> {
            var sorted = rounds.stream().mapToDouble(Double::doubleValue).sorted().toArray();
            System.out.println(name + "\t" + Math.round(sorted[sorted.length / 2]));
        });
        System.exit(0);
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
