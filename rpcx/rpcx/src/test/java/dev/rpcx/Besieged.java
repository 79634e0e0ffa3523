package dev.rpcx;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;

/** A server as a process, in the open: {@code CHAIN KEY AUTHORITIES} of its second port, which wants certificates. The first wants tokens. */
public final class Besieged {
    static final String NAME = "good";
    static final byte[] SECRET = "a secret of more than sixteen bytes".getBytes(StandardCharsets.US_ASCII);

    private Besieged() {}

    @RPCXServer("besieged")
    static final class Service {
        @Method
        String hello(String name) {
            return name;
        }

        @Method
        String much(int bytes) {
            return "x".repeat(bytes);
        }
    }

    @RPCXClient(remoteServerName = "besieged")
    interface Calls {
        @Method(timeoutMillis = 200)
        java.util.concurrent.CompletableFuture<String> hello(String name);
    }

    public static void main(String[] args) throws Exception {
        Interceptor tokens = Tokens.requiring(name -> name.equals(NAME) ? SECRET : null);
        RegistryServer registry = RegistryServer.registry(new Service());
        Server open = Server.builder(registry)
                .host("127.0.0.1")
                .keepAlive(Duration.ofSeconds(2))
                .classic(true)
                // the floods that send whole calls have no token; what comes before a handler is to be held up too
                .interceptor((call, next) ->
                        call.method().equals("much") ? next.proceed(call) : tokens.intercept(call, next))
                .build()
                .start();
        Server locked = Server.builder(RegistryServer.registry(new Service()))
                .host("127.0.0.1")
                .tls(Tls.server(Path.of(args[0]), Path.of(args[1])).requiringClientsOf(Path.of(args[2])))
                .build()
                .start();
        System.out.println("locked " + locked.port());
        System.out.println("open " + open.port());
        while (System.in.read() >= 0) {}
        open.stop(Duration.ofMillis(100));
        locked.stop(Duration.ofMillis(100));
    }
}
