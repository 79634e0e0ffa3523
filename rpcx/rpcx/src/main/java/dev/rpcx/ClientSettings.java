package dev.rpcx;

import dev.rpcx.testing.Faults;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Settings of a client. The builder checks the range of each; what two of them must not be together is checked here.
 *
 * @param callTimeout time of a call without streams whose method does not say otherwise
 * @param connectTimeout time to connect, and once more to be greeted
 * @param keepAlive time within which a server that is gone without a word is noticed
 * @param maxClose longest that closing blocks
 * @param connections connections that are kept to each address
 * @param mostConnections max. connections to each address
 * @param eventLoops number of event loops that serve this client alone; null for those that clients share
 * @param inProcess whether the client calls the in-process servers of its process
 * @param classic whether the client speaks the classic wire
 * @param choice how one of several instances is chosen
 * @param failureShare share of a service's calls whose failure breaks its circuit, or {@link #NO_BREAKER}
 * @param tls null for plain connections
 * @param faults null for connections without faults
 * @param interceptors from the outermost to the innermost
 * @param platform where the client takes loops, time and chance from
 */
record ClientSettings(
        Duration callTimeout,
        Duration connectTimeout,
        Duration keepAlive,
        Duration maxClose,
        int connections,
        int mostConnections,
        @Nullable Integer eventLoops,
        boolean inProcess,
        boolean classic,
        Choice choice,
        double failureShare,
        @Nullable TlsEngine tls,
        @Nullable Faults faults,
        List<Interceptor> interceptors,
        Platform platform) {
    /** Share that no calls reach. */
    static final double NO_BREAKER = 2;

    ClientSettings {
        if (faults != null && classic) {
            throw new IllegalArgumentException("faults on the classic wire (expected: the native one)");
        }
        interceptors = List.copyOf(interceptors);
    }
}
