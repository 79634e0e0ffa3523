package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.util.Version;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/**
 * The versions of Netty for which {@link CloseWatch}, {@link WriteTurn} and {@link ReadTurn} hold. They rely on how
 * Netty works inside: it cancels a socket's registration on the event loop before it closes the socket, whatever closes
 * that; nothing stands before what a thread writes where the channel's outbound buffer is empty; a handler of epoll can
 * be run by a thread that is no event loop, and any other can wake it. A version is added here when
 * {@code CloseWatchTest}, {@code ReadTurn*Test}, {@code WriteTurn*Test}, {@code WireHereTest}, {@code ClientHereTest}
 * and {@code ServerHereTest} have passed with it; Maven takes it by {@code -Dnetty.version}.
 */
class NettyVersionsTest {
    /** The first is that of Spring Boot 4.1.0, for services that start with it. */
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
    }
}
