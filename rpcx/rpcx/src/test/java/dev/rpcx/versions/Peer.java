package dev.rpcx.versions;

import dev.rpcx.Client;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.util.Arrays;
import java.util.Objects;

/**
 * Runs one side as a process. {@code serve RELEASE} serves until the input ends. {@code call RELEASE PORT…} calls the
 * servers at these ports on both wires.
 */
public final class Peer {
    private Peer() {}

    public static void main(String[] args) throws Exception {
        if (args[0].equals("serve")) {
            try (Server server = Server.builder(
                            RegistryServer.registry(args[1].equals("old") ? new Old.Shop() : new New.Shop()))
                    .classic(true)
                    .build()
                    .start()) {
                System.out.println("serving " + server.port());
                while (System.in.read() >= 0) {}
            }
            return;
        }
        for (String port : Arrays.asList(args).subList(2, args.length)) {
            for (boolean classic : new boolean[] {false, true}) {
                try (Client client = classic ? Client.builder().classic().build() : Client.standard()) {
                    if (args[1].equals("old")) {
                        Old.check(client.create(Old.ShopClient.class, "127.0.0.1", Integer.parseInt(port)));
                    } else {
                        New.check(client.create(New.ShopClient.class, "127.0.0.1", Integer.parseInt(port)));
                    }
                }
                System.out.println((classic ? "classic " : "native ") + port);
            }
        }
    }

    public static void expect(String what, Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            throw new AssertionError(what + ": " + got + " (expected: " + wanted + ")");
        }
    }
}
