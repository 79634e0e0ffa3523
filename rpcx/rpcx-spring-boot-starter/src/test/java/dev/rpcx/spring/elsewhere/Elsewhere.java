package dev.rpcx.spring.elsewhere;

import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;

/** A service and a client in a package that belongs to no application. */
public final class Elsewhere {
    private Elsewhere() {}

    @RPCXServer("far")
    public static class Far {
        @Method
        public int number() {
            return 3;
        }
    }

    @RPCXClient(remoteServerName = "far", remoteServerAddress = "127.0.0.1", remoteServerDomain = 9)
    public interface FarClient {
        int number();
    }
}
