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
 * Settings of a client. The builder checks the range of each setting; this class checks which settings exclude each
 * other.
 *
 * @param callTimeout time of a call without streams, unless its method sets another time
 * @param connectTimeout maximum time to connect; once connected, the server has the same time again to greet the client
 * @param keepAlive maximum time until the client notices that a server has vanished
 * @param maxClose maximum time that closing blocks
 * @param connections number of connections that are kept to each address
 * @param maxConnections maximum number of connections to each address
 * @param eventLoops number of event loops that serve only this client; null for the event loops that clients share
 * @param inProcess whether the client uses no sockets, and calls servers of its own process that have the setting
 *     {@code inProcess}
 * @param classic whether the client speaks the classic wire
 * @param choice how one of several instances is chosen
 * @param failureShare share of a service's calls that have to fail before its circuit opens, or {@link #NO_BREAKER}
 * @param tls TLS of the connections; null for plain connections
 * @param faults faults that are added to the connections; null for none
 * @param interceptors interceptors, from the outermost to the innermost
 * @param platform source of event loops, time and random numbers
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
        double failureShare,
        @Nullable TlsEngine tls,
        @Nullable Faults faults,
        List<Interceptor> interceptors,
        Platform platform) {
    /** Value of {@code failureShare} if there is no circuit breaker: no share of the calls can be that large. */
    public static final double NO_BREAKER = 2;

    public ClientSettings {
        if (faults != null && classic) {
            throw new IllegalArgumentException("faults on the classic wire (expected: the native one)");
        }
        interceptors = List.copyOf(interceptors);
    }
}
