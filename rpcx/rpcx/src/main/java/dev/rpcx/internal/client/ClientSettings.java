package dev.rpcx.internal.client;

import dev.rpcx.Choice;
import dev.rpcx.Interceptor;
import dev.rpcx.internal.io.Platform;
import dev.rpcx.internal.io.TlsEngine;
import dev.rpcx.testing.Faults;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The settings of a client. The builder checks the range of each setting, and this class checks which settings exclude
 * each other.
 *
 * @param callTimeout how long a call without streams can take, unless its method has its own timeout
 * @param connectTimeout how long connecting can take; afterwards the server has the same time again to greet the client
 * @param keepAlive how long it takes at most until the client notices that a server has disappeared; on the classic
 *     wire this can take up to four times as long
 * @param maxClose how long closing the client blocks at most
 * @param connections number of connections that the client keeps open to each address; always one on the classic wire
 * @param maxConnections maximum number of connections to each address that take new calls; always one on the classic
 *     wire
 * @param eventLoops number of event loops that serve only this client; null to share event loops with other clients
 * @param inProcess true to call servers in the same process without sockets; such a server has the setting
 *     {@code inProcess} too
 * @param classic true for the classic wire, false for the native wire
 * @param choice how the client chooses one of several instances
 * @param failureFraction fraction of a service's calls that must fail before the circuit breaker refuses calls;
 *     {@link #NO_BREAKER} for no circuit breaker
 * @param tls adds TLS to the connections; null for connections without TLS
 * @param faults faults to simulate on the connections; null for none
 * @param interceptors interceptors of each call, from the outermost to the innermost
 * @param platform provides event loops, time and random numbers
 */
public record ClientSettings(
        Duration callTimeout,
        Duration connectTimeout,
        Duration keepAlive,
        Duration maxClose,
        int connections,
        int maxConnections,
        @Nullable Integer eventLoops,
        boolean inProcess,
        boolean classic,
        Choice choice,
        double failureFraction,
        @Nullable TlsEngine tls,
        @Nullable Faults faults,
        List<Interceptor> interceptors,
        Platform platform) {
    /**
     * Value of {@code failureFraction} for a client without a circuit breaker. The fraction of failed calls is at most
     * 1, so the fraction never reaches this value.
     */
    public static final double NO_BREAKER = 2;

    public ClientSettings {
        if (faults != null && classic) {
            throw new IllegalArgumentException("faults on the classic wire (expected: the native one)");
        }
        interceptors = List.copyOf(interceptors);
    }
}
