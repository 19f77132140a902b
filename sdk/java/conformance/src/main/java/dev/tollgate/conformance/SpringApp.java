package dev.tollgate.conformance;

import dev.tollgate.Tollgate;
import dev.tollgate.servlet.LimitOptions;
import jakarta.servlet.http.HttpServletResponse;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** The example application in Spring Boot, with the starter. */
@RestController
@EnableAutoConfiguration
public class SpringApp {
    static void serve() throws Exception {
        var application = new SpringApplication(SpringApp.class);
        application.setDefaultProperties(Map.of("server.port", "0", "server.address", "127.0.0.1", "spring.main.banner-mode", "off"));
        var context = (ServletWebServerApplicationContext) application.run();
        Main.ready(context.getWebServer().getPort());
    }

    @Bean
    Tollgate tollgate() {
        return Main.client();
    }

    @Bean
    LimitOptions limitOptions() {
        return Main.options();
    }

    @GetMapping("/api/orders/{order}")
    String order(@PathVariable("order") String order) {
        return "{\"order\":\"" + order + "\"}";
    }

    @PostMapping("/api/orders")
    @ResponseStatus(HttpStatus.CREATED)
    String create() {
        return "{\"created\":true}";
    }

    @GetMapping("/api/fail")
    String fail() {
        throw new IllegalStateException("this handler fails");
    }

    @GetMapping("/health")
    String health() {
        return "ok";
    }

    @PostMapping("/api/complete/{tokens}")
    String complete(@PathVariable("tokens") String tokens, HttpServletResponse response) {
        if (tokens.equals("fail")) throw new IllegalStateException("this handler fails");
        response.setHeader("X-Tokens", tokens);
        return "{\"tokens\":" + tokens + "}";
    }
}
