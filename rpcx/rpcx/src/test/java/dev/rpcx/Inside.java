package dev.rpcx;

import dev.rpcx.internal.client.ClientCore;
import dev.rpcx.internal.io.Platform;
import dev.rpcx.internal.server.ServerCore;
import dev.rpcx.internal.server.ServerPlatform;

/** Gives the tests of the other packages access to parts of {@link Client} and {@link Server} that users do not see. */
public final class Inside {
    private Inside() {}

    /** @return what works behind this client */
    public static ClientCore core(Client client) {
        return client.core();
    }

    /** @return what works behind this server */
    public static ServerCore core(Server server) {
        return server.core();
    }

    /** @return the same builder, whose client will use the loops, clock and sockets of this platform */
    public static Client.Builder on(Client.Builder builder, Platform platform) {
        return builder.platform(platform);
    }

    /** @return the same builder, whose server will use the loops, clock, threads and sockets of this platform */
    public static Server.Builder on(Server.Builder builder, ServerPlatform platform) {
        return builder.platform(platform);
    }
}
