package dev.rpcx.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.schema.Field;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class CommandLineTest {
    record Person(@Field(1) String name, @Field(2) int age) {}

    @RPCXServer("people")
    static final class People {
        @Method
        List<Person> older(List<Person> all, int years) {
            return all.stream().map(p -> new Person(p.name, p.age + years)).toList();
        }

        @Method
        String refuse() {
            throw new IllegalArgumentException("not today");
        }
    }

    @RPCXClient(remoteServerName = "people")
    interface PeopleClient {
        CompletableFuture<List<Person>> older(List<Person> all, int years);

        String refuse();
    }

    private final Server server = Server.builder(RegistryServer.registry(new People()))
            .host("127.0.0.1")
            .build()
            .start();
    private final String address = "127.0.0.1:" + server.port();
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();

    @AfterEach
    void stop() {
        server.stop();
    }

    private int run(String... args) {
        out.reset();
        err.reset();
        return new CommandLine(
                        new PrintStream(out, true, StandardCharsets.UTF_8),
                        new PrintStream(err, true, StandardCharsets.UTF_8),
                        getClass().getClassLoader())
                .run(args);
    }

    private String said() {
        return out.toString(StandardCharsets.UTF_8);
    }

    private String complained() {
        return err.toString(StandardCharsets.UTF_8);
    }

    @Test
    void listsAndTellsHealth() {
        assertThat(run("list", address)).as(complained()).isZero();
        assertThat(said()).hasToString("people/older\npeople/refuse\n".replace("\n", System.lineSeparator()));
        assertThat(run("health", address)).isZero();
        assertThat(said()).startsWith("up").contains("2 methods");
        server.stop();
        assertThat(run("health", address)).isEqualTo(2);
        assertThat(complained()).contains("UNAVAILABLE");
    }

    @Test
    void callsWithJson() {
        String type = PeopleClient.class.getName();
        assertThat(run("call", address, type, "older", "[[{\"name\":\"Ada\",\"age\":36}], 2]"))
                .as(complained())
                .isZero();
        assertThat(said()).containsIgnoringWhitespaces("[{\"name\":\"Ada\",\"age\":38}]");
        assertThat(run("call", address, type, "refuse")).isEqualTo(3);
        assertThat(complained()).contains("HANDLER_FAILED", "EXECUTED", "not today");
    }

    @Test
    void badInputSaysWhatWasExpected() {
        String type = PeopleClient.class.getName();
        assertThat(run()).isEqualTo(1);
        assertThat(complained()).contains("rpcx list HOST:PORT");
        assertThat(run("list", "localhost")).isEqualTo(1);
        assertThat(complained()).contains("host:port");
        assertThat(run("call", address, type, "younger")).isEqualTo(1);
        assertThat(complained()).contains("older", "refuse");
        assertThat(run("call", address, type, "older", "[1]")).isEqualTo(1);
        assertThat(complained()).contains("array of 2");
        assertThat(run("call", address, type, "older", "[{]")).isEqualTo(1);
        assertThat(run("call", address, "dev.nobody.Here", "x")).isEqualTo(1);
        assertThat(complained()).contains("RPCX_CLASSPATH");
    }

    @Test
    void printsAProto() {
        assertThat(run("proto", "people", PeopleClient.class.getName())).isZero();
        assertThat(said()).contains("service People", "rpc Older");
    }
}
