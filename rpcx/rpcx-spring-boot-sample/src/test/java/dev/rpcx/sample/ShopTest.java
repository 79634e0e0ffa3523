package dev.rpcx.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.rpcx.sample.orders.OrdersApplication;
import dev.rpcx.sample.orders.StockClient;
import dev.rpcx.sample.stock.StockApplication;
import dev.rpcx.spring.RPCXProperties;
import dev.rpcx.spring.RPCXServing;
import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.expression.spel.standard.SpelExpressionParser;

/** Tests the sample. This class is run with Spring Boot 3.5 too, so it names nothing that only 4 has. */
@Timeout(180)
class ShopTest {
    /** Lets an application read orders.yml, which the guide shows as application.yml. */
    private static final String SETTINGS = "--spring.config.name=orders";

    private static String page() throws IOException {
        return Files.readString(Path.of("..", "rpcx-examples", "guide", "spring.md"));
    }

    @Test
    void anOrderIsOneTraceThroughBothServices() throws Exception {
        List<String> lines = Shop.order();
        assertThat(lines.get(0)).isEqualTo("2 × tea ordered, 8 left");
        assertThat(page()).contains("\n# " + lines.get(0) + "\n");
        assertThat(lines.subList(1, 4).stream().map(line -> line.split("\\s+")[2]))
                .as("trace")
                .containsOnly(lines.get(1).split("\\s+")[2]);
        assertThat(lines.get(1)).endsWith("SERVER stock/take");
        assertThat(lines.get(2)).endsWith("CLIENT stock/take");
        assertThat(lines.get(3)).endsWith("SERVER orders/order");
        // the stock's parent is the call that the orders made, and that call's parent is the order
        assertThat(lines.get(1).split("\\s+")[3]).isEqualTo(lines.get(2).split("\\s+")[5]);
        assertThat(lines.get(2).split("\\s+")[3]).isEqualTo(lines.get(3).split("\\s+")[5]);
    }

    private static ConfigurableApplicationContext start(Class<?> application, String... more) {
        String[] arguments = java.util.stream.Stream.concat(
                        java.util.stream.Stream.of(
                                "--spring.main.banner-mode=off",
                                "--logging.level.root=warn",
                                "--rpcx.server.host=127.0.0.1",
                                "--rpcx.server.port=0"),
                        java.util.stream.Stream.of(more))
                .toArray(String[]::new);
        return new SpringApplicationBuilder(application)
                .registerShutdownHook(false)
                .run(arguments);
    }

    /** Returns a part of what the actuator is told of RPCX. The type of the indicator depends on the Spring Boot. */
    private static Object health(ConfigurableApplicationContext application, String part) {
        return new SpelExpressionParser()
                .parseExpression("health()." + part)
                .getValue(application.getBean("rpcxHealthIndicator"));
    }

    @Test
    void clientsAreInjectedAndCallsCountedAndHealthTold() {
        RPCXServing serving;
        try (ConfigurableApplicationContext stock = start(StockApplication.class)) {
            serving = stock.getBean(RPCXServing.class);
            try (ConfigurableApplicationContext orders = start(
                    OrdersApplication.class,
                    SETTINGS,
                    "--rpcx.services.stock=127.0.0.1:" + serving.port().orElseThrow())) {
                RPCXProperties settings = orders.getBean(RPCXProperties.class);
                assertThat(settings.client().timeout()).isEqualTo(Duration.ofSeconds(2));
                assertThat(settings.server().stop()).isEqualTo(Duration.ofSeconds(20));
                assertThat(orders.getBean(StockClient.class).take("coffee", 1)).isEqualTo(2);
                assertThat(stock.getBean(MeterRegistry.class)
                                .get("rpcx.server.calls")
                                .tag("method", "take")
                                .timer()
                                .count())
                        .isEqualTo(1);
                assertThat(orders.getBean(MeterRegistry.class)
                                .get("rpcx.client.calls")
                                .tag("outcome", "OK")
                                .timer()
                                .count())
                        .isEqualTo(1);
                assertThat(health(stock, "status.code")).isEqualTo("UP");
                assertThat(health(stock, "details['services']")).isEqualTo(List.of("stock/take"));
            }
        }
        assertThat(serving.isRunning()).isFalse();
    }

    @Test
    void theGuideHasTheAddressesOfItsSettingsAndTheMessageOfAWrongKey() throws Exception {
        try (ConfigurableApplicationContext orders =
                start(OrdersApplication.class, SETTINGS, "--rpcx.client.warm-up=off")) {
            assertThat(orders.getBean(RPCXProperties.class).services())
                    .containsEntry("stock", List.of("10.0.0.5:9000", "10.0.0.6:9000"));
        }
        Throwable wrong = catchThrowable(() -> start(OrdersApplication.class, "--rpcx.services.stocks=10.0.0.5:9000"));
        while (wrong.getCause() != null && !wrong.getClass().getSimpleName().equals("RPCXStartException")) {
            wrong = wrong.getCause();
        }
        Matcher text = Pattern.compile("```text\n(.*?)```", Pattern.DOTALL).matcher(page());
        assertThat(text.find()).isTrue();
        assertThat(text.group(1).replaceAll("\\s+", " ").strip()).isEqualTo(wrong.getMessage());
        assertThat(text.find()).isFalse();
    }
}
