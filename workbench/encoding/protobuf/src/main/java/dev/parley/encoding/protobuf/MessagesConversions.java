package dev.parley.encoding.protobuf;

import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.TestModelAllTypes;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import java.util.ArrayList;
import java.util.List;

/**
 * Converts between the records of {@link dev.parley.spi.messages} and the generated messages of the same names, which
 * are written here with their package.
 */
final class MessagesConversions {
    static final List<ProtobufCodec<?, ?>> CODECS = List.of(
            new ProtobufCodec<>(
                    TestModelOnlyText.class,
                    dev.parley.encoding.protobuf.messages.TestModelOnlyText.getDefaultInstance(),
                    MessagesConversions::toMessage,
                    MessagesConversions::toRecord),
            new ProtobufCodec<>(
                    TestModelAllTypesList.class,
                    dev.parley.encoding.protobuf.messages.TestModelAllTypesList.getDefaultInstance(),
                    MessagesConversions::toMessage,
                    MessagesConversions::toRecord),
            new ProtobufCodec<>(
                    GatheredText.class,
                    dev.parley.encoding.protobuf.messages.GatheredText.getDefaultInstance(),
                    MessagesConversions::toMessage,
                    MessagesConversions::toRecord),
            new ProtobufCodec<>(
                    GatheredTypes.class,
                    dev.parley.encoding.protobuf.messages.GatheredTypes.getDefaultInstance(),
                    MessagesConversions::toMessage,
                    MessagesConversions::toRecord));

    private MessagesConversions() {}

    private static dev.parley.encoding.protobuf.messages.TestModelOnlyText toMessage(TestModelOnlyText text) {
        return dev.parley.encoding.protobuf.messages.TestModelOnlyText.newBuilder()
                .setTextField(text.textField())
                .build();
    }

    private static TestModelOnlyText toRecord(dev.parley.encoding.protobuf.messages.TestModelOnlyText text) {
        return new TestModelOnlyText(text.getTextField());
    }

    private static dev.parley.encoding.protobuf.messages.TestModelAllTypes toMessage(TestModelAllTypes item) {
        return dev.parley.encoding.protobuf.messages.TestModelAllTypes.newBuilder()
                .setTextField(item.textField())
                .setBoolField(item.boolField())
                .setByteField(item.byteField())
                .setDateTimeField(Values.toMessage(item.dateTimeField()))
                .setDecimalField(Values.toMessage(item.decimalField()))
                .setFloatField(item.floatField())
                .setIntField(item.intField())
                .setShortField(item.shortField())
                .setLongField(item.longField())
                .build();
    }

    private static TestModelAllTypes toRecord(dev.parley.encoding.protobuf.messages.TestModelAllTypes item) {
        Values.require(item.hasDateTimeField(), "dateTimeField");
        Values.require(item.hasDecimalField(), "decimalField");
        return new TestModelAllTypes(
                item.getTextField(),
                item.getBoolField(),
                item.getByteField(),
                Values.toDateTime(item.getDateTimeField()),
                Values.toDecimal(item.getDecimalField()),
                item.getFloatField(),
                item.getIntField(),
                Values.toShort(item.getShortField(), "shortField"),
                item.getLongField());
    }

    private static dev.parley.encoding.protobuf.messages.TestModelAllTypesList toMessage(TestModelAllTypesList list) {
        var message = dev.parley.encoding.protobuf.messages.TestModelAllTypesList.newBuilder();
        for (TestModelAllTypes item : list.items()) {
            message.addItems(toMessage(item));
        }
        return message.build();
    }

    private static TestModelAllTypesList toRecord(dev.parley.encoding.protobuf.messages.TestModelAllTypesList list) {
        List<TestModelAllTypes> items = new ArrayList<>(list.getItemsCount());
        for (var item : list.getItemsList()) {
            items.add(toRecord(item));
        }
        return new TestModelAllTypesList(items);
    }

    private static dev.parley.encoding.protobuf.messages.GatheredText toMessage(GatheredText gathered) {
        var message = dev.parley.encoding.protobuf.messages.GatheredText.newBuilder();
        for (GatheredText.Part part : gathered.parts()) {
            message.addParts(dev.parley.encoding.protobuf.messages.GatheredText.Part.newBuilder()
                    .setService(part.service())
                    .setAnswer(toMessage(part.answer())));
        }
        return message.build();
    }

    private static GatheredText toRecord(dev.parley.encoding.protobuf.messages.GatheredText gathered) {
        List<GatheredText.Part> parts = new ArrayList<>(gathered.getPartsCount());
        for (var part : gathered.getPartsList()) {
            Values.require(part.hasAnswer(), "answer");
            parts.add(new GatheredText.Part(part.getService(), toRecord(part.getAnswer())));
        }
        return new GatheredText(parts);
    }

    private static dev.parley.encoding.protobuf.messages.GatheredTypes toMessage(GatheredTypes gathered) {
        var message = dev.parley.encoding.protobuf.messages.GatheredTypes.newBuilder();
        for (GatheredTypes.Part part : gathered.parts()) {
            message.addParts(dev.parley.encoding.protobuf.messages.GatheredTypes.Part.newBuilder()
                    .setService(part.service())
                    .setAnswer(toMessage(part.answer())));
        }
        return message.build();
    }

    private static GatheredTypes toRecord(dev.parley.encoding.protobuf.messages.GatheredTypes gathered) {
        List<GatheredTypes.Part> parts = new ArrayList<>(gathered.getPartsCount());
        for (var part : gathered.getPartsList()) {
            Values.require(part.hasAnswer(), "answer");
            parts.add(new GatheredTypes.Part(part.getService(), toRecord(part.getAnswer())));
        }
        return new GatheredTypes(parts);
    }
}
