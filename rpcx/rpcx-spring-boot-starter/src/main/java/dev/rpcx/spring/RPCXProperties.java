package dev.rpcx.spring;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * {@code rpcx.*}.
 *
 * @param server of an application with {@code @RPCXServer} beans
 * @param client of one with {@code @RPCXClient} interfaces
 * @param services where each service is, by its published name: {@code rpcx.services.greeter=10.0.0.5:9000,10.0.0.6:9000}. Beats what the
 *     annotation says. A key that no {@code @RPCXClient} of the application names keeps it from starting. A name with
 *     other characters than letters, digits, hyphens and dots stands in brackets:
 *     {@code rpcx.services[my/service]=10.0.0.5:9000}
 */
@ConfigurationProperties("rpcx")
public record RPCXProperties(
        @DefaultValue Server server,
        @DefaultValue Client client,
        @DefaultValue Map<String, List<String>> services) {
    /**
     * @param host where to listen
     * @param port 0 for one that the system chooses
     * @param stop time for calls under way when the application ends
     * @param maxRunning handlers at once
     */
    public record Server(
            @DefaultValue("0.0.0.0") String host,
            @DefaultValue("9000") int port,
            @DefaultValue("5s") Duration stop,
            @DefaultValue("10000") int maxRunning) {}

    /**
     * @param timeout of calls whose method does not say otherwise
     * @param connections to each instance, no more and no less; as many as the client has of itself where it is not set
     * @param keepAlive a server that is gone without a word is noticed within it
     */
    public record Client(
            @DefaultValue("10s") Duration timeout,
            @Nullable Integer connections,
            @DefaultValue("10s") Duration keepAlive) {}
}
