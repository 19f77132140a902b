package dev.tollgate.spring;

import dev.tollgate.Limit;
import dev.tollgate.Settings;
import java.time.Duration;
import java.util.List;
import org.springframework.boot.context.properties.ConfigurationProperties;

/** {@code tollgate.*} of the application's properties. What is not there comes from the environment. */
@ConfigurationProperties("tollgate")
public record TollgateProperties(
        String url, String token, Duration timeout, Settings.OnError onError, String fallback, List<String> trustedProxies, boolean shadow) {
    Settings settings() {
        var settings = Settings.fromEnvironment();
        if (url != null) settings = settings.url(url);
        if (token != null) settings = settings.token(token);
        if (timeout != null) settings = settings.timeout(timeout);
        if (onError != null) settings = settings.onError(onError);
        if (fallback != null) settings = settings.fallback(Limit.parse(fallback));
        return settings;
    }
}
