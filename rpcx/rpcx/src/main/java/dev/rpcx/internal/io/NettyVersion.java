package dev.rpcx.internal.io;

import io.netty.channel.IoHandlerFactory;
import io.netty.channel.epoll.EpollIoEvent;
import io.netty.util.Version;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Checks that the Netty of this process is of version 4.2 or later. A build can have an older one although RPCX asks
 * for 4.2: the BOM of Spring Boot 3.5 sets 4.1 for all that it manages. Without this check, the first client or server
 * would fail with a {@code NoClassDefFoundError}, which names neither a version nor what to do.
 */
public final class NettyVersion {
    /** A version that {@code NettyVersionsTest} lists, as an example for the text of the error. */
    static final String EXAMPLE = "4.2.18.Final";

    private NettyVersion() {}

    /**
     * Checks the version. Looks at classes and not at the versions that the jars state, since a program that is packed
     * into one jar may have lost those.
     *
     * @throws IllegalStateException if Netty is older than 4.2
     */
    public static void check() {
        try {
            // Netty 4.1 has none of these classes, each of which is in another of Netty's jars.
            Objects.requireNonNull(ThreadAwareExecutor.class);
            Objects.requireNonNull(IoHandlerFactory.class);
            Objects.requireNonNull(EpollIoEvent.class);
        } catch (NoClassDefFoundError e) {
            Map<String, String> versions = new TreeMap<>();
            Version.identify(NettyVersion.class.getClassLoader())
                    .forEach((jar, version) -> versions.put(jar, version.artifactVersion()));
            throw new IllegalStateException(text(e.getMessage(), versions), e);
        }
    }

    /**
     * Returns the text of the error.
     *
     * @param lacking name of a class that is not there
     * @param versions versions by the names of the jars
     */
    static String text(@Nullable String lacking, Map<String, String> versions) {
        Map<String, String> jars = versions.entrySet().stream()
                .collect(Collectors.groupingBy(
                        Map.Entry::getValue,
                        TreeMap::new,
                        Collectors.mapping(Map.Entry::getKey, Collectors.joining(", "))));
        String found = jars.isEmpty()
                ? "of unknown version"
                : jars.size() == 1
                        ? jars.keySet().iterator().next()
                        : jars.entrySet().stream()
                                .map(each -> each.getKey() + " (" + each.getValue() + ")")
                                .collect(Collectors.joining(", "));
        return "Netty " + found + " has no " + String.valueOf(lacking).replace('/', '.')
                + " (expected: Netty 4.2 in all of its jars, such as " + EXAMPLE + ")";
    }
}
