package dev.rpcx.examples;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.tool.SchemaTool;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests that the committed {@code .proto} files and the lock are what the tool makes of the examples. In the build of
 * this module, protoc compiles the files.
 */
class ExportTest {
    private static String tool(int status, List<String> arguments) {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        try (PrintStream out = new PrintStream(said, true, StandardCharsets.UTF_8)) {
            assertThat(new SchemaTool(out, out, ExportTest.class.getClassLoader()).run(arguments))
                    .as("%s", said)
                    .isEqualTo(status);
        }
        return said.toString(StandardCharsets.UTF_8);
    }

    @ParameterizedTest
    @CsvSource({
        "hello, HelloWorld$Greeter",
        "async, ManyAtOnce$PricesClient",
        "context, OtherThreads$ClockClient",
        "errors, WhatWentWrong$AccountsClient",
        "streaming, Thermometers$StationClient",
        "plain, GreeterClient$Greeter"
    })
    void theCommittedFileIsTheExport(String example, String type) throws Exception {
        Path file = Path.of("src/test/protobuf/dev/rpcx/exported/" + example + ".proto");
        assertThat(tool(
                        0,
                        List.of("proto", "dev.rpcx.exported." + example, "dev.rpcx.examples." + example + "." + type)))
                .isEqualTo(Files.readString(file));
    }

    /** A service's class publishes what its client's interface calls, whatever the access of its methods. */
    @ParameterizedTest
    @ValueSource(strings = {"hello.HelloWorld$Greetings", "plain.GreeterServer$Greetings"})
    void theServersSideIsTheSame(String type) {
        assertThat(tool(0, List.of("proto", "dev.rpcx.exported", "dev.rpcx.examples." + type)))
                .contains("rpc Hello(HelloRequest) returns (HelloReply);");
    }

    @Test
    void theLockIsUpToDate() {
        List<String> arguments = new ArrayList<>(List.of("check", "src/main/resources/META-INF/rpcx/schema.lock"));
        for (String type : List.of(
                "hello.HelloWorld$Greeter",
                "async.ManyAtOnce$PricesClient",
                "context.OtherThreads$ClockClient",
                "errors.WhatWentWrong$AccountsClient",
                "streaming.Thermometers$StationClient",
                "streaming.Countdown$RocketClient",
                "types.Letters$PostClient",
                "timeouts.Timeouts$ReportsClient",
                "interceptors.Tenants$InvoicesClient",
                "instances.TwoInstances$WhoAmI",
                "tls.Vault$VaultClient",
                "metrics.Observed$WeatherClient",
                "operating.Stopping$KitchenClient",
                "feign.Catalog$CatalogClient",
                "dubbo.SharedInterface$GreetingService",
                "plain.GreeterClient$Greeter")) {
            arguments.add("dev.rpcx.examples." + type);
        }
        tool(0, arguments);
    }
}
