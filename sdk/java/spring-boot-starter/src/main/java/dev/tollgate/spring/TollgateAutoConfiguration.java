package dev.tollgate.spring;

import dev.tollgate.Tollgate;
import dev.tollgate.servlet.LimitOptions;
import dev.tollgate.servlet.TollgateFilter;
import java.util.List;
import java.util.Optional;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;

/** Puts the filter in front of every request. A bean of {@link LimitOptions} says who is asking; a bean of {@link Tollgate} replaces the client. */
@AutoConfiguration
@EnableConfigurationProperties(TollgateProperties.class)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
public class TollgateAutoConfiguration {
    /** After the filters that encode and forward, before those that authenticate by a session. */
    private static final int ORDER = Ordered.HIGHEST_PRECEDENCE + 100;

    @Bean
    @ConditionalOnMissingBean
    public Tollgate tollgate(TollgateProperties properties) {
        return new Tollgate(properties.settings());
    }

    @Bean
    @ConditionalOnMissingBean
    public LimitOptions limitOptions(TollgateProperties properties) {
        var proxies = Optional.ofNullable(properties.trustedProxies()).orElse(List.of());
        return new LimitOptions().trustedProxies(proxies).shadow(properties.shadow());
    }

    @Bean
    public FilterRegistrationBean<TollgateFilter> tollgateFilter(Tollgate tollgate, LimitOptions options) {
        var registration = new FilterRegistrationBean<>(new TollgateFilter(tollgate, options));
        registration.setOrder(ORDER);
        return registration;
    }
}
