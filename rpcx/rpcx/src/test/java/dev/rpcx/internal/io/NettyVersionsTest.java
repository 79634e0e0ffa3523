package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.util.Version;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/**
 * Lists the versions of Netty with which {@link CloseWatch}, {@link WriteTurn} and {@link ReadTurn} are known to work.
 * {@code CloseWatch} is the only class that uses the internals of Netty's epoll transport, and {@code RoomsTest} checks
 * that. {@code WriteTurn}, {@link SocketQueue} and {@link HalfClose} use {@code Channel.Unsafe} too, which Netty
 * publishes. What is known to work rests on these facts: Netty cancels the registration of a socket on its event loop
 * before it closes the socket, whatever the reason for the close; what a thread writes comes first if the channel's
 * outbound buffer is empty; a thread that is no event loop can run an epoll handler, and any other thread can wake that
 * handler. Before a version is added here, {@code CloseWatchTest}, {@code ReadTurn*Test}, {@code WriteTurn*Test},
 * {@code WireHereTest}, {@code ClientHereTest} and {@code ServerHereTest} have to pass with it. Maven uses a version by
 * {@code -Dnetty.version}.
 */
class NettyVersionsTest {
    /** The first version is that of Spring Boot 4.1.0, for services that start with it. */
    private static final Set<String> TRIED = Set.of("4.2.15.Final", "4.2.18.Final");

    @Test
    void theTurnsHaveBeenTriedWithThisNetty() {
        Map<String, String> found = new TreeMap<>();
        Version.identify(CloseWatch.class.getClassLoader()).forEach((artifact, version) -> {
            if (artifact.startsWith("netty-transport")) {
                found.put(artifact, version.artifactVersion());
            }
        });
        assertThat(found)
                .containsKeys(
                        "netty-transport",
                        "netty-transport-classes-epoll",
                        "netty-transport-native-epoll",
                        "netty-transport-native-unix-common");
        assertThat(TRIED).as("tried, of " + found).containsAll(found.values());
        assertThat(TRIED).contains(NettyVersion.EXAMPLE);
    }
}
