// A protected endpoint in Spring Boot. From sdk/java, after `mvn package`, beside a server that was started with
// `tollgate serve --rules ../conformance/rules.yaml`:
//   java -cp 'conformance/target/lib/*' examples/Orders.java
//   curl -i http://127.0.0.1:8000/api/orders/7        # 200 three times, then 429
import dev.tollgate.Request;
import dev.tollgate.servlet.LimitOptions;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

@RestController
@EnableAutoConfiguration
public class Orders {
    public static void main(String[] args) {
        var application = new SpringApplication(Orders.class);
        application.setDefaultProperties(Map.of("server.port", "8000", "tollgate.fallback", "100/1m"));
        application.run(args);
    }

    /** Who is asking: the key, where there is exactly one; the address in any case. */
    @Bean
    LimitOptions limitOptions() {
        return new LimitOptions().identify(request -> Request.of().apiKey(LimitOptions.onlyHeader(request, "X-API-Key")));
    }

    @GetMapping("/api/orders/{order}")
    Map<String, String> order(@PathVariable("order") String order) {
        return Map.of("order", order);
    }
}
