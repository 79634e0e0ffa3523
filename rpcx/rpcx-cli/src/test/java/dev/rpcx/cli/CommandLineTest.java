package dev.rpcx.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.rpcx.Endpoint;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.Tls;
import dev.rpcx.Tokens;
import dev.rpcx.schema.Field;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CommandLineTest {
    record Person(@Field(1) String name, @Field(2) int age) {}

    @RPCXServer("people")
    static final class People {
        @Method
        List<Person> older(List<Person> all, int years) {
            return all.stream().map(p -> new Person(p.name, p.age + years)).toList();
        }

        @Method
        Flow.Publisher<String> watch() {
            throw new IllegalStateException("not from here");
        }

        @Method
        String steer(boolean asResult) {
            String text = "\u001B[31mred\u009B0m\u007F\nand so on";
            if (asResult) {
                return text;
            }
            throw new IllegalArgumentException(text);
        }

        @Method
        String refuse() {
            throw new IllegalArgumentException("not today");
        }
    }

    @RPCXClient(remoteServerName = "people")
    interface PeopleClient {
        CompletableFuture<List<Person>> older(List<Person> all, int years);

        Flow.Publisher<String> watch();

        String steer(boolean asResult);

        String refuse();
    }

    /** Has another member at number 2. */
    record Veteran(@Field(1) String name, @Field(2) int years) {}

    @RPCXClient(remoteServerName = "people")
    interface ChangedPeopleClient {
        List<Veteran> older(List<Veteran> all, int years);
    }

    private final Server server = Server.builder(RegistryServer.registry(new People()))
            .host("127.0.0.1")
            .reflection()
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
        return new Rpcx(
                        InputStream.nullInputStream(),
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
        assertThat(said().lines())
                .containsExactly(
                        "people/older(repeated Person all, int32 years) returns (repeated Person value)",
                        "people/refuse() returns (string value)",
                        "people/steer(bool asResult) returns (string value)",
                        "people/watch() returns (stream string value)",
                        "rpcx.reflection/services");
        assertThat(run("list", address, "--json")).isZero();
        assertThat(said().lines())
                .hasSize(5)
                .contains(
                        "{\"method\":\"people/older\",\"request\":\"repeated Person all, int32 years\","
                                + "\"reply\":\"repeated Person value\"}",
                        "{\"method\":\"rpcx.reflection/services\"}");
        assertThat(run("health", address)).isZero();
        assertThat(said()).startsWith("up").contains("5 methods");
        assertThat(run("health", address, "--json")).isZero();
        assertThat(said().strip()).matches("\\{\"up\":true,\"millis\":\\d+,\"methods\":5}");
        server.stop();
        assertThat(run("health", address)).isEqualTo(2);
        assertThat(complained()).contains("UNAVAILABLE");
    }

    @Test
    void callsWithJson() {
        String json = "{\"all\":[{\"name\":\"Ada\",\"age\":36}],\"years\":2}";
        assertThat(run("call", address, "people/older", json)).as(complained()).isZero();
        assertThat(said()).containsIgnoringWhitespaces("{\"value\":[{\"name\":\"Ada\",\"age\":38}]}");
        assertThat(run("call", address, "people/refuse")).isEqualTo(3);
        assertThat(complained()).contains("HANDLER_FAILED", "EXECUTED", "not today");
    }

    @Test
    void describesAServiceByAProtoOfTheServer() {
        assertThat(run("describe", address, "people")).as(complained()).isZero();
        assertThat(said())
                .contains(
                        "service People {",
                        "  rpc Older(OlderRequest) returns (OlderReply);",
                        "  rpc Watch(google.protobuf.Empty) returns (stream WatchReply);",
                        "message Person {",
                        "  int32 age = 2;");
        assertThat(run("describe", address, "peple")).isEqualTo(1);
        assertThat(complained())
                .isEqualToIgnoringNewLines("peple: no such service, did you mean people? (expected: one of people)");
    }

    /** A class takes the place of what the server would say, and the server is not asked. */
    @Test
    void aServerThatDescribesNothingIsCalledByAClass() {
        String type = PeopleClient.class.getName();
        Server silent = Server.builder(RegistryServer.registry(new People()))
                .host("127.0.0.1")
                .build()
                .start();
        try {
            String at = "127.0.0.1:" + silent.port();
            assertThat(run("list", at)).isZero();
            assertThat(said().lines()).containsExactly("people/older", "people/refuse", "people/steer", "people/watch");
            assertThat(run("list", at, "--class", type)).isZero();
            assertThat(said()).contains("people/steer(bool asResult) returns (string value)");
            assertThat(run("call", at, "people/steer", "{\"asResult\":true}")).isEqualTo(1);
            assertThat(complained())
                    .isEqualToIgnoringNewLines(at + " does not describe its services (expected: a server that was built"
                            + " with reflection(), or --class and the interface of the service)");
            assertThat(run("describe", at, "people")).isEqualTo(1);
            assertThat(run("call", at, "people/steer", "{\"asResult\":true}", "--class", type))
                    .as(complained())
                    .isZero();
            assertThat(said()).contains("red");
        } finally {
            silent.stop();
        }
    }

    @Test
    void aClassWhoseMembersTheServerWouldMisreadIsNotCalled() {
        assertThat(run(
                        "call",
                        address,
                        "people/older",
                        "{\"all\":[{\"years\":36}],\"years\":2}",
                        "--class",
                        ChangedPeopleClient.class.getName()))
                .isEqualTo(3);
        assertThat(complained())
                .contains("INVALID, NOT_EXECUTED", "another schema", "Veteran.years", "Person.age")
                .hasLineCount(1);
    }

    /** Names are for anybody who connects. Descriptions are for those who may call. */
    @Test
    void aServerThatKnowsItsCallersListsNamesToOthers(@TempDir Path folder) throws Exception {
        byte[] secret = "the own secret of alice".getBytes(StandardCharsets.UTF_8);
        Path file = Files.write(folder.resolve("alice.secret"), secret);
        Server closed = Server.builder(RegistryServer.registry(new People()))
                .host("127.0.0.1")
                .reflection()
                .interceptor(Tokens.requiring(Map.of("alice", secret)::get))
                .build()
                .start();
        try {
            String at = "127.0.0.1:" + closed.port();
            assertThat(run("list", at)).isZero();
            assertThat(said())
                    .contains("people/refuse" + System.lineSeparator())
                    .doesNotContain("returns");
            assertThat(run("call", at, "people/refuse")).isEqualTo(3);
            assertThat(complained()).contains("UNAUTHENTICATED, NOT_EXECUTED").hasLineCount(1);
            assertThat(run("list", at, "--token", "alice:" + file)).isZero();
            assertThat(said()).contains("people/refuse() returns (string value)");
        } finally {
            closed.stop();
        }
    }

    @Test
    void aMistakeIsToldInTheCallersWords(@TempDir Path folder) throws Exception {
        assertThat(run("list")).isEqualTo(1);
        assertThat(complained()).startsWith("HOST:PORT is missing");
        assertThat(run("list", address, "--server-name", "")).isEqualTo(1);
        assertThat(complained()).contains("--server-name: nothing behind it (expected: NAME)");
        assertThat(run("list", address, "--tls")).isEqualTo(2);
        assertThat(complained())
                .contains("UNAVAILABLE, NOT_EXECUTED", "the peer does not use TLS, and this side does")
                .hasLineCount(1);
        assertThat(run("call", address, "people/older", "{\"all\":[{\"age\":\"x\"}]}"))
                .isEqualTo(1);
        assertThat(complained())
                .contains("all[0].age: \"x\" (expected: an integer")
                .doesNotContainIgnoringCase("Deserialization");
        assertThat(run("call", address, "people/older", "[{]")).isEqualTo(1);
        assertThat(complained()).doesNotContain("Parser", "Feature");
        assertThat(run("proto", "com.acme", "dev.nobody.Here")).isEqualTo(1);
        assertThat(complained()).contains("RPCX_CLASSPATH");
        Path secret = Files.writeString(folder.resolve("secret"), "0123456789abcdef\n");
        assertThat(run("health", address, "--token", "alice:" + secret)).isZero();
        assertThat(complained()).contains("line break");
        Path made = folder.resolve("new/schema.lock");
        assertThat(run("lock", made.toString(), PeopleClient.class.getName())).isZero();
        assertThat(complained()).contains("made the folder");
    }

    @Test
    void badInputSaysWhatWasExpected() {
        assertThat(run()).isEqualTo(1);
        assertThat(complained()).contains("Usage: rpcx", "list", "describe", "health", "call", "check");
        assertThat(run("list", "localhost")).isEqualTo(1);
        assertThat(complained()).contains("host:port");
        assertThat(run("call", address, "people/younger")).isEqualTo(1);
        assertThat(complained()).contains("people/older", "people/refuse");
        assertThat(run("call", address, "people/older", "[1]")).isEqualTo(1);
        assertThat(complained()).contains("an object of OlderRequest: all, years");
        assertThat(run("call", address, "people/older", "--class", "dev.nobody.Here"))
                .isEqualTo(1);
        assertThat(complained()).contains("RPCX_CLASSPATH");
    }

    @Test
    void anAddressOfIpv6StandsInBrackets() {
        assertThat(Remote.endpoint("[::1]:9000")).isEqualTo(new Endpoint("::1", 9000));
        assertThat(Remote.endpoint("[fe80::1%eth0]:9000")).isEqualTo(new Endpoint("fe80::1%eth0", 9000));
        assertThat(Remote.endpoint("[::ffff:127.0.0.1]:9000")).isEqualTo(new Endpoint("::ffff:127.0.0.1", 9000));
    }

    @Test
    void printsAProto() {
        assertThat(run("proto", "people", PeopleClient.class.getName())).isZero();
        assertThat(said()).contains("service People", "rpc Older");
    }

    /** Makes a certificate that is its own authority, for this host's address, and its key. */
    private static Path[] certificate(Path folder, String name) throws Exception {
        Path store = folder.resolve(name + ".p12");
        Process keytool = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "keytool")
                                .toString(),
                        "-genkeypair",
                        "-alias",
                        name,
                        "-keyalg",
                        "EC",
                        "-dname",
                        "CN=" + name,
                        "-ext",
                        "SAN=ip:127.0.0.1",
                        "-keystore",
                        store.toString(),
                        "-storepass",
                        "changeit")
                .redirectErrorStream(true)
                .start();
        keytool.getInputStream().readAllBytes();
        assertThat(keytool.waitFor()).isZero();
        KeyStore keys = KeyStore.getInstance(store.toFile(), "changeit".toCharArray());
        Path chain = folder.resolve(name + ".crt");
        Path key = folder.resolve(name + ".key");
        Files.writeString(chain, pem("CERTIFICATE", keys.getCertificate(name).getEncoded()));
        Files.writeString(
                key,
                pem("PRIVATE KEY", keys.getKey(name, "changeit".toCharArray()).getEncoded()));
        return new Path[] {chain, key};
    }

    private static String pem(String what, byte[] bytes) {
        return "-----BEGIN " + what + "-----\n" + Base64.getMimeEncoder().encodeToString(bytes) + "\n-----END " + what
                + "-----\n";
    }

    @Test
    void speaksTlsShowsACertificateAndSignsItsCalls(@TempDir Path folder) throws Exception {
        Path[] its = certificate(folder, "server");
        Path[] own = certificate(folder, "caller");
        byte[] secret = "the own secret of alice".getBytes(StandardCharsets.UTF_8);
        Path file = folder.resolve("alice.secret");
        Files.write(file, secret);
        Server closed = Server.builder(RegistryServer.registry(new People()))
                .host("127.0.0.1")
                .tls(Tls.server(its[0], its[1]).requiringClientsOf(own[0]))
                .interceptor(Tokens.requiring(Map.of("alice", secret)::get))
                .build()
                .start();
        try {
            String at = "127.0.0.1:" + closed.port();
            String json = "{\"years\":1}";
            String type = PeopleClient.class.getName();
            String[] tls = {"--ca", its[0].toString(), "--cert", own[0].toString(), "--key", own[1].toString()};
            String[] signed = {"--token", "alice:" + file};
            assertThat(run(all(tls, "list", at))).as(complained()).isZero();
            assertThat(said()).contains("people/older");
            assertThat(run(all(tls, "health", at))).as(complained()).isZero();
            assertThat(run(all(tls, all(signed, "call", "--class", type, at, "people/older", json))))
                    .as(complained())
                    .isZero();
            // options may stand behind, too
            assertThat(run(all(all(new String[] {"call", "--class", type, at, "people/older", json}, signed), tls)))
                    .as(complained())
                    .isZero();
            assertThat(run(all(tls, "call", "--class", type, at, "people/older", json)))
                    .isEqualTo(3);
            assertThat(complained()).contains("UNAUTHENTICATED", "NOT_EXECUTED");
            assertThat(run("list", at)).isEqualTo(2);
            assertThat(run("--tls", "list", at))
                    .as("not one of the JDK's authorities")
                    .isEqualTo(2);
            assertThat(run("--ca", its[0].toString(), "list", at))
                    .as("no certificate of its own")
                    .isEqualTo(2);
            assertThat(run(all(tls, "--server-name", "elsewhere.example", "list", at)))
                    .isEqualTo(2);
        } finally {
            closed.stop();
        }
    }

    private static String[] all(String[] first, String... rest) {
        return Stream.concat(Stream.of(first), Stream.of(rest)).toArray(String[]::new);
    }

    @Test
    void eachMistakeIsOneLine(@TempDir Path folder) throws Exception {
        Path text = Files.writeString(folder.resolve("text"), "no certificate");
        Path binary = Files.write(folder.resolve("binary"), new byte[] {(byte) 0xff, 0x1b, 0x5b});
        String type = PeopleClient.class.getName();
        Map<String[], String> mistakes = Map.ofEntries(
                Map.entry(new String[] {"lsit", address}, "lsit"),
                Map.entry(new String[] {"list"}, "HOST:PORT"),
                Map.entry(new String[] {"list", "localhost"}, "host:port"),
                Map.entry(new String[] {"list", "localhost:99999"}, "65535"),
                Map.entry(new String[] {"list", ":1"}, "host"),
                Map.entry(new String[] {"list", address, "--tsl"}, "--tsl"),
                Map.entry(new String[] {"list", address, "--ca"}, "--ca"),
                Map.entry(new String[] {"list", address, "--ca", "/nowhere.pem"}, "/nowhere.pem"),
                Map.entry(new String[] {"list", address, "--ca", text.toString()}, "PEM"),
                Map.entry(new String[] {"list", address, "--cert", text.toString()}, "--key"),
                Map.entry(new String[] {"list", address, "--token", "alice"}, "PRINCIPAL:FILE"),
                Map.entry(new String[] {"list", address, "--token", "alice:/nowhere"}, "no such file"),
                Map.entry(new String[] {"list", address, "--token", "alice:" + text}, "16"),
                Map.entry(
                        new String[] {"list", address, "--token", "alice:0123456789 the secret itself"},
                        "PRINCIPAL:FILE"),
                Map.entry(new String[] {"list", address, "--token", "0123456789 the secret itself"}, "PRINCIPAL:FILE"),
                Map.entry(new String[] {"list", address, "--ca", folder.toString()}, "a folder"),
                Map.entry(new String[] {"list", address, "--ca", "--tls"}, "nothing behind it"),
                Map.entry(new String[] {"list", address, "--tls", "--tls"}, "twice"),
                Map.entry(new String[] {"list", address, "--ca=/nowhere.pem"}, "--ca /nowhere.pem: no such file"),
                Map.entry(new String[] {"list", address, "--server-nam", "x"}, "did you mean --server-name?"),
                Map.entry(new String[] {"list", address, "x"}, "x: one word too many (expected: rpcx list HOST:PORT)"),
                Map.entry(new String[] {"--tls"}, "no command"),
                Map.entry(new String[] {""}, "no command (expected: call, check, "),
                Map.entry(new String[] {"--tls", "list", address, "--tls"}, "--tls: stands there twice"),
                Map.entry(new String[] {"list", address, "--tls=false"}, "--tls"),
                Map.entry(new String[] {"list", address, "--ca", "--nosuch"}, "--ca: nothing behind it"),
                Map.entry(new String[] {"list", address, "--tokn=0123456789"}, "did you mean --token?"),
                Map.entry(new String[] {"--tls", "proto", "p", type}, "--tls: no such option of proto"),
                Map.entry(new String[] {"lock", "-x", type}, "-x: no such option of lock"),
                Map.entry(new String[] {"lock", "--rename"}, "--rename: nothing behind it (expected: OLD=NEW)"),
                Map.entry(new String[] {"lock", "--rename", "a", "x", type}, "--rename a (expected: OLD=NEW"),
                Map.entry(new String[] {"check", "--removed", "a", "x", type}, "--removed: no such option of check"),
                Map.entry(new String[] {"--", "list", address}, "list: stands behind --"),
                Map.entry(new String[] {"help", "lsit"}, "lsit: no such command, did you mean list?"),
                Map.entry(new String[] {"help", "list", "extra"}, "extra: one word too many (expected: rpcx help"),
                Map.entry(new String[] {"help", "list", "--tls"}, "--tls: no such option of help"),
                Map.entry(new String[] {"call", address, "@" + text}, "@"),
                Map.entry(new String[] {"list", address, "\u001B[31m\nx"}, "\\u001b[31m\\u000ax: one word too many"),
                Map.entry(new String[] {"li\u001B[31mst"}, "li\\u001b[31mst: no such command"),
                Map.entry(new String[] {"list", address, "--\u001B[31m"}, "--\\u001b[31m: no such option"),
                Map.entry(new String[] {"list", address, "--tls=\u001B[31m"}, "--tls: takes no value"),
                Map.entry(new String[] {"list", address, "--tls=" + "x".repeat(100_000)}, "--tls"),
                Map.entry(new String[] {"list", address, "--" + "x".repeat(100_000)}, "100002 characters"),
                Map.entry(new String[] {"help", "\u001B[31m"}, "\\u001b[31m: no such command"),
                Map.entry(new String[] {"list", "::1:9000"}, "[::1]:9000"),
                Map.entry(
                        new String[] {"list", "[zz::1]:9000"},
                        "[zz::1]:9000 (expected: an address of IPv6 in brackets, [::1]:9000)"),
                Map.entry(new String[] {"list", "[1:2]:9000"}, "[1:2]:9000 (expected: an address of IPv6"),
                Map.entry(new String[] {"list", "[localhost]:9000"}, "[localhost]:9000 (expected: an address of IPv6"),
                Map.entry(
                        new String[] {"list", "http://localhost:9000"},
                        "http://localhost:9000 (expected: host:port, and no URL)"),
                Map.entry(new String[] {"health", "https://[::1]:9000/x"}, "(expected: host:port, and no URL)"),
                Map.entry(new String[] {"list", "localhost:0"}, "port: 0"),
                Map.entry(new String[] {"list", "localhost:+90"}, "host:port"),
                Map.entry(new String[] {"list", "localhost:99999999999"}, "1 to 65535"),
                Map.entry(new String[] {"list", "x".repeat(100_000)}, "100000 characters"),
                Map.entry(new String[] {"call", address}, "SERVICE/METHOD is missing (expected: rpcx call HOST:PORT"),
                Map.entry(
                        new String[] {"call", "--class", "java.util.List", address, "List/get", "{}"},
                        "java.util.List"),
                Map.entry(new String[] {"call", "--class", "dev/rpcx/Client", address, "a/b"}, "dev/rpcx/Client"),
                Map.entry(new String[] {"call", address, "people/odler"}, "did you mean people/older?"),
                Map.entry(new String[] {"call", address, "older"}, "older: no such method"),
                Map.entry(new String[] {"call", address, "people/older", "{}", "x"}, "x: one word too many"),
                Map.entry(new String[] {"call", address, "people/older", "--class"}, "--class: nothing behind it"),
                Map.entry(new String[] {"describe", address}, "SERVICE is missing"),
                Map.entry(new String[] {"list", address, "--timeout"}, "--timeout: nothing behind it"),
                Map.entry(new String[] {"--json", "proto", "p", type}, "--json: no such option of proto"),
                Map.entry(new String[] {"lock", "x"}, "rpcx lock FILE CLASS..."),
                Map.entry(new String[] {"lock", folder.toString(), type}, "a folder"),
                Map.entry(new String[] {"lock", "a\0b", type}, "the name of a file"),
                Map.entry(new String[] {"check", binary.toString(), type}, "UTF-8"),
                Map.entry(new String[] {"compare", binary.toString(), text.toString()}, "UTF-8"),
                Map.entry(
                        new String[] {"compare", "a", "b", "c"},
                        "c: one word too many (expected: rpcx compare OLD NEW)"),
                Map.entry(new String[] {"proto", "p;x", type}, "a package of Protobuf"),
                Map.entry(new String[] {"proto", "--tls", "p", type}, "--tls: no such option of proto"),
                Map.entry(new String[] {"proto", "p", "java.lang.String"}, "no published method"),
                Map.entry(new String[] {"call", address, "people/older", "{} {}"}, "JSON"),
                Map.entry(new String[] {"call", address, "people/older", ""}, "JSON"));
        mistakes.forEach((asked, expected) -> {
            assertThat(run(asked)).as(String.join(" ", asked) + complained()).isEqualTo(1);
            assertThat(complained())
                    .as(String.join(" ", asked))
                    .contains(expected)
                    .doesNotContain("0123456789")
                    .hasLineCount(1)
                    .hasSizeLessThan(400);
            assertThat(said()).isEmpty();
        });
        assertThat(run("--help")).isZero();
        assertThat(said()).contains("Usage: rpcx", "list", "--token", "--ca");
    }

    @Test
    void whatAServerSaysCannotSteerTheTerminal() {
        assertThat(run("call", address, "people/steer", "{}")).isEqualTo(3);
        assertThat(complained()).contains("red").hasLineCount(1);
        assertThat(complained().chars().filter(c -> Character.isISOControl(c) && c != '\n' && c != '\r'))
                .isEmpty();
        assertThat(run("call", address, "people/steer", "{\"asResult\":true}")).isZero();
        assertThat(said()).contains("red");
        assertThat(said().chars().filter(c -> Character.isISOControl(c) && c != '\n' && c != '\r'))
                .isEmpty();
    }

    @Test
    void eachCommandTellsOfItself() {
        for (String command :
                new String[] {"list", "describe", "health", "call", "proto", "lock", "check", "compare"}) {
            for (String[] asked : new String[][] {{command, "--help"}, {"help", command}, {"--help", command}}) {
                assertThat(run(asked)).isZero();
                assertThat(said()).startsWith("Usage: rpcx " + command + " ").contains("--debug", "Exit codes:");
                assertThat(complained()).isEmpty();
            }
        }
    }

    /** Names of commands may be values, and a value may begin with a hyphen behind {@code --}. */
    @Test
    void whatStandsBehindAnOptionOrTwoHyphensIsAValue() {
        assertThat(run("--server-name", "health", "list", address)).isEqualTo(2);
        assertThat(run("list", "--", address)).as(complained()).isZero();
        assertThat(run("call", address, "people/older", "--", "-5")).isEqualTo(1);
        assertThat(complained()).startsWith("the request: -5 (expected: an object of OlderRequest");
    }

    @Test
    void theHelpOfCheckSaysThatAStaleLockFails(@TempDir Path folder) throws Exception {
        assertThat(run("check", "--help")).isZero();
        assertThat(said()).contains("behind").contains("3");
        Path lock = folder.resolve("schema.lock");
        assertThat(run("lock", lock.toString(), PeopleClient.class.getName())).isZero();
        assertThat(run("check", lock.toString(), PeopleClient.class.getName())).isZero();
        Files.writeString(lock, Files.readString(lock).replace("people/refuse", "people/refused"));
        assertThat(run("check", lock.toString(), PeopleClient.class.getName())).isEqualTo(3);
        assertThat(complained()).contains("behind the classes");
    }

    @Test
    void aNameThatIsGoneIsAskedAboutAndAnsweredByAnOption(@TempDir Path folder) throws Exception {
        String type = PeopleClient.class.getName();
        Path lock = folder.resolve("schema.lock");
        assertThat(run("lock", lock.toString(), type)).isZero();
        String locked = Files.readString(lock);
        String before = locked.replace("  2 age int", "  2 years int");
        Files.writeString(lock, before);
        assertThat(run("lock", lock.toString(), type)).isEqualTo(1);
        assertThat(complained())
                .contains("age stands where years stood", "--rename years=age or --removed years", "is not changed");
        assertThat(lock).hasContent(before);
        assertThat(run("lock", lock.toString(), type, "--removed", "years")).isEqualTo(3);
        assertThat(lock).hasContent(before);
        assertThat(run("lock", "--rename", "years=age", lock.toString(), type))
                .as(complained())
                .isZero();
        assertThat(Files.readString(lock)).isEqualTo(locked.replace("  2 age int\n", "  2 age int\n  was 2 years\n"));
    }

    @Test
    void theVersionIsThatOfTheBuild() {
        assertThat(run("--version")).isZero();
        assertThat(said().strip()).matches("rpcx \\d+\\.\\d+\\.\\d+(-SNAPSHOT)?");
    }

    @Test
    void theShellCompletesCommandsOptionsAndFiles(@TempDir Path folder) throws Exception {
        assumeThat(Path.of("/bin/bash")).exists();
        assertThat(run("completion")).isZero();
        Path script = Files.writeString(folder.resolve("completion"), said());
        Process bash = new ProcessBuilder("/bin/bash", "-c", """
                        compopt() { :; }
                        . "$0"
                        complete_words() {
                          COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*"
                          _complete_rpcx
                          echo "${COMPREPLY[*]}"
                        }
                        complete_words rpcx de
                        complete_words rpcx he
                        complete_words rpcx list --to
                        complete_words rpcx proto --
                        complete_words rpcx list --ca "$0"
                        """, script.toString())
                .redirectErrorStream(true)
                .start();
        List<String> completed = new String(bash.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                .lines()
                .toList();
        assertThat(bash.waitFor()).isZero();
        assertThat(completed).hasSize(5);
        assertThat(completed.get(0)).isEqualTo("describe");
        assertThat(completed.get(1)).isEqualTo("health help");
        assertThat(completed.get(2)).isEqualTo("--token");
        assertThat(completed.get(3)).contains("--help").doesNotContain("--tls", "--token");
        assertThat(completed.get(4)).isEqualTo(script.toString());
    }

    @Test
    void onlyDebugShowsAStackTrace() {
        assertThat(run("list", address, "--tsl")).isEqualTo(1);
        assertThat(complained()).hasLineCount(1);
        assertThat(run("list", address, "--tsl", "--debug")).isEqualTo(1);
        assertThat(complained())
                .contains("    at picocli.CommandLine", "    at dev.rpcx.cli.Rpcx", "--tsl: no such option");
    }

    @Test
    void noTraceHoldsTheValueOfAnOptionThatIsMistyped() {
        assertThat(run("list", address, "--tokn=kept-secret", "--debug")).isEqualTo(1);
        assertThat(complained())
                .contains("    at picocli.CommandLine", "--tokn: no such option")
                .doesNotContain("kept-secret");
    }

    @Test
    void noErrorHoldsTheValueOfAnOptionThatTakesNone() {
        assertThat(run("list", address, "--tls=kept-secret")).isEqualTo(1);
        assertThat(complained()).startsWith("--tls: takes no value").doesNotContain("kept-secret");
        assertThat(run("list", address, "--token:alice:kept-secret")).isEqualTo(1);
        assertThat(complained()).contains("--token: no such option").doesNotContain("kept-secret");
    }

    @Test
    void whetherAServerSpeaksTlsIsToldOrAskedWhereOneHasListened(@TempDir Path folder) throws Exception {
        Path[] its = certificate(folder, "server");
        Server closed = Server.builder(RegistryServer.registry(new People()))
                .host("127.0.0.1")
                .tls(Tls.server(its[0], its[1]))
                .build()
                .start();
        try {
            assertThat(run("health", "127.0.0.1:" + closed.port())).isEqualTo(2);
            assertThat(complained())
                    .contains("the peer uses TLS, and this side does not")
                    .doesNotContain("does it speak TLS?")
                    .hasLineCount(1);
        } finally {
            closed.stop();
        }
        try (ServerSocket silent = new ServerSocket(0, 5, InetAddress.getLoopbackAddress())) {
            assertThat(run("health", "127.0.0.1:" + silent.getLocalPort())).isEqualTo(2);
            assertThat(complained()).contains("does it speak TLS?").hasLineCount(1);
        }
        server.stop();
        assertThat(run("health", address)).isEqualTo(2);
        assertThat(complained()).contains("refused").doesNotContain("TLS").hasLineCount(1);
        assertThat(run("health", "no.such.host.invalid:1")).isEqualTo(2);
        assertThat(complained()).doesNotContain("TLS").hasLineCount(1);
    }
}
