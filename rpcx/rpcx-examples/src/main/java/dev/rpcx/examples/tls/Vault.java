package dev.rpcx.examples.tls;

import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.Tls;
import dev.rpcx.Tokens;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.Principal;

/** Calls over TLS with a token: {@code Vault FOLDER}, where FOLDER has server.pem and server.key. */
public final class Vault {
    @RPCXServer("vault")
    static class Doors {
        @Method("whoAmI")
        String whoAmI() {
            return CallContext.current()
                    .flatMap(CallContext::principal)
                    .map(Principal::getName)
                    .orElse("nobody");
        }
    }

    @RPCXClient(remoteServerName = "vault")
    interface VaultClient {
        @Method("whoAmI")
        String whoAmI();
    }

    private Vault() {}

    public static void main(String[] args) {
        Path certificate = Path.of(args[0], "server.pem");
        Path key = Path.of(args[0], "server.key");
        byte[] secret = "in real life 16 random bytes".getBytes(StandardCharsets.UTF_8);
        try (Server server = Server.builder(RegistryServer.registry(new Doors()))
                        .tls(Tls.server(certificate, key))
                        .interceptor(Tokens.requiring(caller -> caller.equals("alice") ? secret : null))
                        .build()
                        .start();
                Client client = Client.builder()
                        .tls(Tls.client().trusting(certificate))
                        .interceptor(Tokens.signing("alice", secret))
                        .build()) {
            VaultClient vault = client.create(VaultClient.class, "127.0.0.1", server.port());
            System.out.println("the vault is called by " + vault.whoAmI());
        }
    }
}
