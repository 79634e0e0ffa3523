package dev.rpcx.spring;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Properties {@code rpcx.*} of an application.
 *
 * @param server settings of the server, in an application with {@code @RPCXServer} beans
 * @param client settings of the client, in an application with {@code @RPCXClient} interfaces
 * @param services addresses of each service, by its published name:
 *     {@code rpcx.services.greeter=10.0.0.5:9000,10.0.0.6:9000}. They take precedence over discovery and over the
 *     annotation. A key that no {@code @RPCXClient} of the application names keeps the application from starting. A
 *     name with other characters than letters, digits, hyphens and dots stands in brackets:
 *     {@code rpcx.services[my/service]=10.0.0.5:9000}
 * @param basePackages packages that are looked through for {@code @RPCXServer} classes and {@code @RPCXClient}
 *     interfaces, with those below them, in addition to the packages of the application itself:
 *     {@code rpcx.base-packages=com.acme.stock.api}. A package without any of them keeps the application from starting
 */
@ConfigurationProperties("rpcx")
public record RPCXProperties(
        @DefaultValue Server server,
        @DefaultValue Client client,
        @DefaultValue Map<String, List<String>> services,
        @DefaultValue List<String> basePackages) {
    /**
     * Settings of the server.
     *
     * @param host address on which the server listens
     * @param port port on which the server listens; 0 for one that the system chooses
     * @param stop time for calls under way to end when the application ends
     * @param maxRunning largest number of handlers that run at once
     */
    public record Server(
            @DefaultValue("0.0.0.0") String host,
            @DefaultValue("9000") int port,
            @DefaultValue("5s") Duration stop,
            @DefaultValue("10000") int maxRunning) {}

    /**
     * Settings of the client.
     *
     * @param timeout time for a call whose method does not set another
     * @param connections exact number of connections to each instance; if it is not set, the client makes as many as
     *     it does by itself
     * @param keepAlive time within which a server that has vanished without closing its connections is noticed
     * @param warmUp whether the client is prepared before the application is ready
     */
    public record Client(
            @DefaultValue("10s") Duration timeout,
            @Nullable Integer connections,
            @DefaultValue("10s") Duration keepAlive,
            @DefaultValue("try") WarmUp warmUp) {}

    /**
     * Whether the client is prepared by {@link dev.rpcx.Client#warmUp} before the application is ready, that is, before
     * Spring Boot's readiness state is {@code ACCEPTING_TRAFFIC}. The application is ready after {@code timeout} at the
     * latest.
     */
    public enum WarmUp {
        /** The client connects at the first call. */
        OFF,
        /** The client is prepared. A warning says which services or methods are not there. */
        TRY,
        /** The client is prepared. If a service or a method is not there, the application does not start. */
        REQUIRE
    }
}
