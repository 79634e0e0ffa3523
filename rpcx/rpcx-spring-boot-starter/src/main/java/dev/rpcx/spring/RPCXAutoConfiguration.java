package dev.rpcx.spring;

import dev.rpcx.Client;
import dev.rpcx.micrometer.CallMetrics;
import dev.rpcx.opentelemetry.CallTracing;
import io.micrometer.core.instrument.MeterRegistry;
import io.opentelemetry.api.OpenTelemetry;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.ApplicationRunner;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/**
 * Configures one {@link Client} and one server for an application, and connects them with its meters, its traces and
 * its health, if it has them. It prepares the client before the application is ready. The client, the server, the
 * health indicator and what prepares the client each give way to a bean of the application's own.
 *
 * <p>The class is compiled with Spring Boot 4, and works with Spring Boot 3.5 too. Classes that only one of the two has
 * are given by their names, or used in a nested class that Spring loads only where they are.
 */
@AutoConfiguration(
        afterName = {
            "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.opentelemetry.autoconfigure.OpenTelemetrySdkAutoConfiguration",
            "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.actuate.autoconfigure.opentelemetry.OpenTelemetryAutoConfiguration"
        })
@EnableConfigurationProperties(RPCXProperties.class)
@Import(RPCXBeans.class)
public class RPCXAutoConfiguration {
    /** Called by Spring. */
    public RPCXAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    Client rpcxClient(RPCXProperties properties, ObjectProvider<RPCXClientCustomizer> customizers) {
        Client.Builder builder = RPCXStartException.checkingNetty(Client::builder)
                .callTimeout(properties.client().timeout())
                .keepAlive(properties.client().keepAlive());
        Integer connections = properties.client().connections();
        if (connections != null) {
            builder.connections(connections);
        }
        customizers.orderedStream().forEach(customizer -> customizer.customize(builder));
        return builder.build();
    }

    /**
     * Makes the bean that creates the proxies. If there are several discoveries, one of them has to be
     * {@code @Primary}: otherwise Spring refuses to start the application, and names the discoveries.
     *
     * @param discovery provider, since the Spring of Boot 3.5 does not know JSpecify's {@code @Nullable}
     */
    @Bean
    RPCXClients rpcxClients(
            Client client,
            RPCXProperties properties,
            ObjectProvider<RPCXDiscovery> discovery,
            ObjectProvider<CalledServices> called) {
        called.ifAvailable(services -> RPCXClients.check(properties, services));
        return new RPCXClients(client, properties, discovery.getIfAvailable());
    }

    /**
     * Checks the keys of {@code rpcx.services} at the start, also where beans are lazy, so that a key that no client
     * has is not found only at the first request.
     */
    @Bean
    SmartInitializingSingleton rpcxKeys(RPCXProperties properties, ObjectProvider<CalledServices> called) {
        return () -> called.ifAvailable(services -> RPCXClients.check(properties, services));
    }

    /** Makes the bean that prepares the client, once the server listens and before the application is ready. */
    @Bean
    @ConditionalOnMissingBean(name = "rpcxWarmUp")
    ApplicationRunner rpcxWarmUp(Client client, RPCXProperties properties) {
        return new RPCXWarmUp(client, properties.client().warmUp());
    }

    @Bean
    @ConditionalOnMissingBean
    RPCXServing rpcxServing(
            ListableBeanFactory beans, RPCXProperties properties, ObjectProvider<RPCXServerCustomizer> customizers) {
        return new RPCXServing(beans, properties, customizers.orderedStream().toList());
    }

    /** Adds the timers {@code rpcx.client.calls} and {@code rpcx.server.calls}. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({CallMetrics.class, MeterRegistry.class})
    @ConditionalOnBean(MeterRegistry.class)
    static class Metrics {
        @Bean
        RPCXClientCustomizer rpcxClientMetrics(MeterRegistry registry) {
            return builder -> builder.interceptor(CallMetrics.ofClient(registry));
        }

        @Bean
        RPCXServerCustomizer rpcxServerMetrics(MeterRegistry registry) {
            return builder -> builder.interceptor(CallMetrics.ofServer(registry));
        }
    }

    /** Adds a span for each call on each side. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({CallTracing.class, OpenTelemetry.class})
    @ConditionalOnBean(OpenTelemetry.class)
    static class Tracing {
        @Bean
        RPCXClientCustomizer rpcxClientTracing(OpenTelemetry telemetry) {
            return builder -> builder.interceptor(CallTracing.ofClient(telemetry));
        }

        @Bean
        RPCXServerCustomizer rpcxServerTracing(OpenTelemetry telemetry) {
            return builder -> builder.interceptor(CallTracing.ofServer(telemetry));
        }
    }

    /**
     * Adds {@code rpcx} to the actuator's health. It is up while the server listens, and unknown otherwise, such as
     * where there is nothing to serve.
     */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(HealthIndicator.class)
    static class Boot4Health {
        @Bean
        @ConditionalOnMissingBean(name = "rpcxHealthIndicator")
        HealthIndicator rpcxHealthIndicator(RPCXServing serving) {
            return () -> serving.isRunning()
                    ? Health.up()
                            .withDetail("port", serving.port().orElse(0))
                            .withDetail("services", serving.services())
                            .build()
                    : Health.unknown().build();
        }
    }

    /** Does what {@link Boot4Health} does for the actuator of Spring Boot 3.5, whose types have other names. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(org.springframework.boot.actuate.health.HealthIndicator.class)
    static class Boot3Health {
        @Bean
        @ConditionalOnMissingBean(name = "rpcxHealthIndicator")
        org.springframework.boot.actuate.health.HealthIndicator rpcxHealthIndicator(RPCXServing serving) {
            return () -> serving.isRunning()
                    ? org.springframework.boot.actuate.health.Health.up()
                            .withDetail("port", serving.port().orElse(0))
                            .withDetail("services", serving.services())
                            .build()
                    : org.springframework.boot.actuate.health.Health.unknown().build();
        }
    }
}
