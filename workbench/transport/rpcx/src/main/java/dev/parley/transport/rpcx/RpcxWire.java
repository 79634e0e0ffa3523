package dev.parley.transport.rpcx;

import dev.rpcx.Client;
import dev.rpcx.Server;

/** The variants differ in which of RPCX's two wires both sides speak. */
enum RpcxWire {
    /** What a user gets by default. */
    NATIVE("rpcx", "RPCX", "RPCX native 1 over TCP", "at once when idle, gathered up to 64 KiB when busy"),

    /** Source: zhang, figure 5 and section Design. */
    CLASSIC(
            "rpcx-classic",
            "RPCX, the paper's wire",
            "RPCX classic over TCP: each message behind its length in four bytes, with the names of service and method"
                    + " and of each parameter's type as text (Server.Builder.classic(true),"
                    + " Client.Builder.classic()); no deadline and no cancel on the wire",
            "at once; what is answered while a read lasts, at its end");

    final String variant;
    final String title;
    final String protocol;
    final String flush;

    RpcxWire(String variant, String title, String protocol, String flush) {
        this.variant = variant;
        this.title = title;
        this.protocol = protocol;
        this.flush = flush;
    }

    Client client() {
        return this == NATIVE ? Client.standard() : Client.builder().classic().build();
    }

    Server.Builder on(Server.Builder server) {
        return server.classic(this == CLASSIC);
    }
}
